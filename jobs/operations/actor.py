"""Who acts: a user as the database has him now, and the names that he is recorded under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model

from jobs import audit
from jobs.outcomes import Refused

RULE = "jobs.rule_effect"
APPROVE = "jobs.approve_ruling"
LONGEST = 150


@dataclass(frozen=True, slots=True)
class Actor:
    """One entitled person. Two-person rules compare `name`; `signature` also tells the shell."""

    user: Any

    name: str
    signature: str


def admit(user: Any, *permissions: str) -> Actor:
    """Return who `user` is, holding at least one of `permissions`; to be called in the transaction.

    The account is read again: one that was closed or lost a permission since the page was opened is refused.
    Raises Refused USER_UNKNOWN, USER_INACTIVE, NOT_PERMITTED.
    """
    key = getattr(user, "pk", None)
    found = get_user_model()._default_manager.filter(pk=key).first() if key is not None else None  # noqa: SLF001
    if found is None:
        raise Refused("USER_UNKNOWN", user=str(user))
    name = found.get_username()[:LONGEST]
    if not found.is_active:
        raise Refused("USER_INACTIVE", user=name)
    if not any(found.has_perm(permission) for permission in permissions):
        raise Refused("NOT_PERMITTED", user=name, permission=permissions[0])
    return Actor(found, name, signed(name))


def signed(name: str) -> str:
    """Return the name with the account of the machine, where it came in through a shell."""
    account = audit.origin().account
    shell = f" (shell: {account})" if account else ""
    return name[: LONGEST - len(shell)] + shell


def person_of(recorded: str) -> str:
    """Return whose name was recorded: `ada`, `ada by token nightly` and `ada (shell: root)` are ada."""
    return recorded.partition(" ")[0]
