"""Who comes in through a shell: a named person, recorded with the account that it was typed under."""

from __future__ import annotations

import os
import pwd
from typing import Any

from django.contrib.auth import get_user_model

from jobs.outcomes import Refused


def at_shell(username: str) -> Any:
    """Return the user named at a shell; raises Refused USER_UNKNOWN or USER_INACTIVE."""
    user = get_user_model()._default_manager.filter(username=username).first()  # noqa: SLF001
    if user is None:
        raise Refused("USER_UNKNOWN", user=username)
    if not user.is_active:
        raise Refused("USER_INACTIVE", user=username)
    return user


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
