"""For a file of tests that each need the cluster to themselves: both stand in for those of conftest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from tests import flush
from tests.browser.data import viewer


@pytest.fixture
def transactional_db(server: LiveServer, django_db_blocker: Any) -> Iterator[None]:
    """The database, emptied after each test."""
    with django_db_blocker.unblock():
        yield
        flush.empty("default")


@pytest.fixture
def person(transactional_db: None) -> Any:
    """A viewer with a password."""
    return viewer()
