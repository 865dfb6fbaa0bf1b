"""What a handler asserts counts: the worker takes an AssertionError for the handler's own and goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.worker import scene


@pytest.fixture(autouse=True)
def _claims_of_handlers() -> Iterator[None]:
    scene.BROKEN.clear()
    yield
    if scene.BROKEN:
        raise scene.BROKEN[0]
