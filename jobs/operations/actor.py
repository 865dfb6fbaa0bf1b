"""Who acts: a user as the database has him now, what he must hold, the names he is recorded under."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils import timezone

from jobs import audit
from jobs.models.audit import Source
from jobs.outcomes import Refused

VIEW_PAYLOAD = "jobs.view_payload"
RULE = "jobs.rule_effect"
APPROVE = "jobs.approve_ruling"
CANCEL = "jobs.cancel_job"
FORCE_CANCEL = "jobs.force_cancel_job"
RETRY = "jobs.retry_job"
REVISE = "jobs.revise_job"
HOLD = "jobs.hold_job"
PAUSE = "jobs.pause_queue"
RAISE = "jobs.raise_epoch"
FENCE = "jobs.fence_worker"
TOKENS = "jobs.manage_token"
RUN_DRILL = "jobs.run_drill"
LONGEST = 150


@dataclass(frozen=True, slots=True)
class Actor:
    """One entitled person. Two-person rules compare `name`; `signature` also tells the shell or the token."""

    user: Any

    name: str
    signature: str


def admit(user: Any, *permissions: str, recent: bool = False) -> Actor:
    """Return who `user` is, holding at least one of `permissions`; to be called in the transaction.

    The account is read again: one that was closed or lost a permission since the page was opened is refused.
    `recent` also asks that who came in through the console or the API proved a moment ago who he is.
    Raises Refused USER_UNKNOWN, USER_INACTIVE, NOT_PERMITTED, LOGIN_NOT_RECENT.
    """
    found = of(user)
    if not any(found.user.has_perm(permission) for permission in permissions):
        raise Refused("NOT_PERMITTED", user=found.name, permission=permissions[0])
    if recent:
        need_recent()
    return found


def still(key: str, *permissions: str, beside: Actor) -> Actor:
    """Return who has this key, still holding at least one of `permissions`; read where `beside` was.

    For what one person asked and another confirms. Raises as `admit` does.
    """
    people = get_user_model()._default_manager.using(beside.user._state.db)  # noqa: SLF001
    return admit(people.filter(pk=key).first(), *permissions)


def of(user: Any) -> Actor:
    """Return who `user` is, read again, whatever he may do. Raises Refused USER_UNKNOWN, USER_INACTIVE."""
    key = getattr(user, "pk", None)
    found = None
    if key is not None:
        # Where he was read: a drill has people of its own.
        found = get_user_model()._default_manager.using(user._state.db).filter(pk=key).first()  # noqa: SLF001
    if found is None:
        raise Refused("USER_UNKNOWN", user=str(user))
    name = found.get_username()[:LONGEST]
    if not found.is_active:
        raise Refused("USER_INACTIVE", user=name)
    return Actor(found, name, signed(name))


def need_recent() -> None:
    """Raise Refused LOGIN_NOT_RECENT for somebody who may have left a browser or a token lying about.

    A shell is not asked: who has it could change the clock and the database too.
    """
    door = audit.origin()
    seconds = settings.INTERLOCK["RECENT_LOGIN_SECONDS"]
    if door.source in (Source.CONSOLE, Source.API) and (
        door.proved_at is None or timezone.now() - door.proved_at > timedelta(seconds=seconds)
    ):
        raise Refused("LOGIN_NOT_RECENT", minutes=max(1, seconds // 60))


def signed(name: str) -> str:
    """Return the name with the token or the machine's account through which it came in."""
    door = audit.origin()
    by = f" (shell: {door.account})" if door.account else f" by token {door.token}" if door.token else ""
    return (name[: max(0, LONGEST - len(by))] + by)[:LONGEST]


def person_of(recorded: str) -> str:
    """Return whose name was recorded: `ada`, `ada by token nightly` and `ada (shell: root)` are ada."""
    return recorded.partition(" ")[0]
