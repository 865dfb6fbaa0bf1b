"""Who comes in through a shell: a named and entitled person, recorded with the account it was typed under."""

from __future__ import annotations

import os
import pwd
from typing import Any

from django.contrib.auth import get_user_model

from jobs.outcomes import Refused

PERMISSIONS = {
    "cancel": "jobs.cancel_job",
    "retry": "jobs.retry_job",
    "hold": "jobs.hold_job",
    "unhold": "jobs.hold_job",
}
"""What a person must hold to use a verb."""
LONGEST = 150


def user_named(username: str) -> Any:
    """Return the person that somebody at a shell acts as; raises Refused USER_UNKNOWN, USER_INACTIVE."""
    user = get_user_model()._default_manager.filter(username=username).first()  # noqa: SLF001
    if user is None:
        raise Refused("USER_UNKNOWN", user=username)
    if not user.is_active:
        raise Refused("USER_INACTIVE", user=username)
    return user


def person(username: str, verb: str) -> str:
    """Return the actor to record for `verb`: the person, and the account of the machine it was typed under.

    Raises Refused USER_UNKNOWN, USER_INACTIVE or NOT_PERMITTED.
    """
    user = user_named(username)
    if not user.has_perm(PERMISSIONS[verb]):
        raise Refused("NOT_PERMITTED", user=username, permission=PERMISSIONS[verb])
    shell = f" (shell: {account()})"
    return username[: LONGEST - len(shell)] + shell


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
