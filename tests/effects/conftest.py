"""What the effect tests share: a worker stepped by hand in real time, and effect kinds made for one test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs import effect_kinds, handlers
from tests.effects.outside import Outside


@pytest.fixture
def outside(transactional_db: None) -> Iterator[Outside]:
    """An outside world that does what it is told, and kinds of jobs and effects that reach it."""
    kinds = {kind.name for kind in effect_kinds.registered()}
    known = set(handlers.known_kinds())
    world = Outside()
    yield world
    effect_kinds.forget(*{kind.name for kind in effect_kinds.registered()} - kinds)
    handlers.forget(*set(handlers.known_kinds()) - known)
    assert not world.broken, world.broken
