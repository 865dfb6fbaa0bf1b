"""The people of the rulings' tests, and no effect kind left behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from jobs import effect_kinds
from tests.operations import scene


@pytest.fixture(autouse=True)
def _no_kind_left() -> Iterator[None]:
    yield
    effect_kinds.forget(scene.PAY)


@pytest.fixture
def ada(db: None) -> User:
    """Rules."""
    return scene.user("ada", "rule_effect")


@pytest.fixture
def bea(db: None) -> User:
    """Approves."""
    return scene.user("bea", "approve_ruling")


@pytest.fixture
def cyd(db: None) -> User:
    """Does both."""
    return scene.user("cyd", "rule_effect", "approve_ruling")


@pytest.fixture
def dan(db: None) -> User:
    """May look, and nothing else."""
    return scene.user("dan", "view_case")
