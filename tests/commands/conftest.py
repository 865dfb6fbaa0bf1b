"""Running the operators' commands in this process, with people to run them as."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command


class Answer(NamedTuple):
    """What a run of the command printed and how it ended."""

    code: int
    out: str
    errors: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def jobs(*arguments: object) -> Answer:
    """Run `manage.py jobs` with these arguments."""
    return manage("jobs", *arguments)


def manage(command: str, *arguments: object) -> Answer:
    """Run a command of `manage.py` with these arguments."""
    out, errors = StringIO(), StringIO()
    code = 0
    try:
        call_command(command, *map(str, arguments), stdout=out, stderr=errors)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return Answer(code, out.getvalue(), errors.getvalue())


@pytest.fixture
def person(db: None) -> Callable[..., str]:
    """Create a user who holds these permissions of the jobs application, and return the name."""

    def create(name: str, *codenames: str, **fields: Any) -> str:
        user = User.objects.create_user(name, **fields)
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        return name

    return create


@pytest.fixture
def operator(person: Callable[..., str]) -> str:
    """Somebody who may cancel, retry and hold."""
    return person("ada", "cancel_job", "retry_job", "hold_job")


@pytest.fixture
def chief(person: Callable[..., str]) -> str:
    """Somebody who may do everything to the cluster."""
    return person("grace", "raise_epoch", "pause_queue", "fence_worker", "hold_job")


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have somebody type a line."""
    return lambda line: monkeypatch.setattr("sys.stdin", StringIO(line + "\n"))
