"""`installation`: a database of its own and the processes that work on it, gone after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.processes.databases import Ground, ground_of, installed, migrated
from tests.processes.installation import Installation
from tests.processes.warm import Warm

Install = Callable[[Path], AbstractContextManager[Installation]]


@pytest.fixture(scope="session")
def _ground(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Ground, str]]:
    with django_db_blocker.unblock():
        ground = ground_of("default", tmp_path_factory.mktemp("databases"))
        with migrated(ground) as template:
            yield ground, template


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """What starts the processes; see tests/processes/warm.py."""
    with Warm() as started:
        yield started


@pytest.fixture(scope="session")
def install(_ground: tuple[Ground, str], warm: Warm) -> Install:
    """Makes installations, for what lives longer than one test; needs the database unblocked."""
    return lambda folder: installed(*_ground, folder, warm)


@pytest.fixture
def installation(install: Install, django_db_blocker: Any, tmp_path: Path) -> Iterator[Installation]:
    """A whole installation for one test; see tests/processes/installation.py."""
    with django_db_blocker.unblock(), install(tmp_path) as made:
        yield made
