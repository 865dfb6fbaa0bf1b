"""The web server that is fuzzed: the product's own, where a kind of job and one of effects take anything."""

from __future__ import annotations

from typing import Any

from config.wsgi import application
from jobs import handlers
from tests.build import KIND
from tests.operations import scene

__all__ = ["application"]


@handlers.job(KIND, queue="default", redact=["hidden"])
def anything(**_arguments: Any) -> None:
    """Do nothing: only workers of the fuzz claim it."""


scene.kind()
