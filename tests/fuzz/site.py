"""The web server that is fuzzed: the product's own, where a kind of job and one of effects take anything."""

from __future__ import annotations

from config.wsgi import application
from tests.fuzz import callers

__all__ = ["application"]

callers.declare()
