"""Who comes in through a shell: a named and entitled person, recorded with the account it was typed under."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser

from jobs.outcomes import Refused

PERMISSIONS = {
    "cancel": "jobs.cancel_job",
    "retry": "jobs.retry_job",
    "hold": "jobs.hold_job",
    "unhold": "jobs.hold_job",
    "quarantine": "jobs.hold_job",
    "raise_epoch": "jobs.raise_epoch",
    "open_claims": "jobs.raise_epoch",
    "close_claims": "jobs.raise_epoch",
    "pause_queue": "jobs.pause_queue",
    "resume_queue": "jobs.pause_queue",
    "fence_worker": "jobs.fence_worker",
}
"""What a person must hold to use a verb."""
LONGEST = 150


@dataclass(frozen=True, slots=True)
class Person:
    """Who asks for an operation: an account of ours, and the name to record."""

    user: AbstractBaseUser
    actor: str

    def need(self, verb: str) -> None:
        """Raise Refused NOT_PERMITTED unless this person may use `verb`."""
        if not self.user.has_perm(PERMISSIONS[verb]):  # type: ignore[attr-defined]  # users here have permissions
            name = self.user.get_username()
            raise Refused("NOT_PERMITTED", user=name, permission=PERMISSIONS[verb])


def at_shell(username: str) -> Person:
    """Return the person named at a shell; raises Refused USER_UNKNOWN or USER_INACTIVE."""
    user = get_user_model()._default_manager.filter(username=username).first()  # noqa: SLF001
    if user is None:
        raise Refused("USER_UNKNOWN", user=username)
    if not user.is_active:
        raise Refused("USER_INACTIVE", user=username)
    shell = f" (shell: {account()})"
    return Person(user, username[: LONGEST - len(shell)] + shell)


def person(username: str, verb: str) -> str:
    """Return the actor to record for `verb`: the person, and the account of the machine it was typed under.

    Raises Refused USER_UNKNOWN, USER_INACTIVE or NOT_PERMITTED.
    """
    found = at_shell(username)
    found.need(verb)
    return found.actor


def account() -> str:
    """Return the account that this process runs under; the environment's word for it could be anything."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name[:40]
    except KeyError:  # a container's account often has no name
        return str(os.getuid())


class Anybody:
    """Nobody in particular, for judging what may be done whoever does it."""

    def get_username(self) -> str:
        return ""

    def has_perm(self, _permission: str) -> bool:
        return True
