"""The second factor: codes from a device of the person's own, beside the password.

A person enrols a device and takes it away alone; somebody who lost it is helped by who may change accounts.
Either ends the sessions that were opened before, in the same transaction: all but the one it was done in.
Wrong codes make the device wait longer and longer; each code is good once. Nothing here returns a secret of a
device that is in use.
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import DEFAULT_DB_ALIAS, transaction
from django.utils import timezone
from django_otp.plugins.otp_totp.models import TOTPDevice, default_key

from jobs.operations import sessions
from jobs.operations.actor import Actor, admit, need_recent, of
from jobs.outcomes import Refused
from jobs.verbs import audited
from jobs.verbs.base import need_reason

CHANGE = "auth.change_user"
KEY = "second_factor"
"""In a session whose person showed a code."""
LONGEST = 20
"""Characters of a code that are looked at; it has six, which some apps print in two groups."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a code; `wait`: seconds before the next one is looked at, where this one was not."""

    right: bool
    wait: int = 0


def has(user: Any) -> bool:
    """Return whether the person has a device, and is asked its code."""
    return bool(TOTPDevice.objects.filter(user_id=user.pk, confirmed=True).exists())


def note(session: MutableMapping[str, Any]) -> None:
    """Keep that the person of this session showed a code."""
    session[KEY] = True


def missing(user: Any, session: Any) -> bool:
    """Return whether this installation asks a second factor that the session's person has not shown."""
    shown = session is not None and session.get(KEY)
    return bool(settings.REQUIRE_SECOND_FACTOR and user.is_staff and not shown)


def judge(user: Any, code: str) -> Judged:
    """Judge a code. A right one is used up; a wrong one makes the next one wait."""
    with transaction.atomic():
        devices = TOTPDevice.objects.select_for_update().filter(user_id=user.pk, confirmed=True)
        device = devices.order_by("pk").first()
        if device is None:
            return Judged(right=False)
        allowed, why = device.verify_is_allowed()
        if not allowed:
            left = (why["locked_until"] - timezone.now()).total_seconds()
            return Judged(right=False, wait=max(1, math.ceil(left)))
        return Judged(device.verify_token(_digits(code)))


def new_device(user: Any, key: str | None = None) -> TOTPDevice:
    """Return a device that is not kept anywhere yet: its address is what an app reads."""
    return TOTPDevice(user=user, name="app", key=key or default_key(), confirmed=True)


def enrol(
    key: str, code: str, *, actor: Any, session: str | None = None, using: str = DEFAULT_DB_ALIAS
) -> None:
    """Make the device with this secret the person's second factor, once it has shown a right code.

    All other sessions of the person end; `session` is the key of the one that goes on.

    Raises Refused SECOND_FACTOR_WRONG, SECOND_FACTOR_THERE (another form was faster), LOGIN_NOT_RECENT.
    """
    with transaction.atomic(using):
        by = _locked(actor, using)
        if TOTPDevice.objects.using(using).filter(user=by.user, confirmed=True).exists():
            raise Refused("SECOND_FACTOR_THERE")
        if not new_device(by.user, key).verify_token(_digits(code)):
            raise Refused("SECOND_FACTOR_WRONG")
        sessions.end(by.user, keep=session, using=using)
        _audit(using, "enrol_second_factor", by, by.user, "", after=True)


def remove(*, actor: Any, session: str | None = None, using: str = DEFAULT_DB_ALIAS) -> None:
    """Take the person's own device away. All other sessions of the person end, as in `enrol`.

    Raises Refused SECOND_FACTOR_NONE, LOGIN_NOT_RECENT.
    """
    with transaction.atomic(using):
        by = _locked(actor, using)
        _take(by.user, using)
        sessions.end(by.user, keep=session, using=using)
        _audit(using, "remove_second_factor", by, by.user, "", after=False)


def reset(username: str, *, actor: Any, reason: str, using: str = DEFAULT_DB_ALIAS) -> None:
    """Take somebody's device away who lost it; all sessions of that person end.

    Raises Refused USER_UNKNOWN, SECOND_FACTOR_NONE, and what `admit` does.
    """
    need_reason(reason)
    with transaction.atomic(using):
        by = admit(actor, CHANGE, recent=True)
        user = get_user_model()._default_manager.using(using).filter(username=username).first()  # noqa: SLF001
        if user is None:
            raise Refused("USER_UNKNOWN", user=username)
        lock(user, using)
        _take(user, using)
        sessions.end(user, keep=None, using=using)
        _audit(using, "reset_second_factor", by, user, reason, after=False)


def lock(user: Any, using: str = DEFAULT_DB_ALIAS) -> None:
    """Hold the person's row until the transaction ends: forms and log-ins of one person take turns."""
    people = get_user_model()._default_manager.using(using)  # noqa: SLF001
    people.select_for_update().filter(pk=user.pk).first()


def _locked(actor: Any, using: str) -> Actor:
    need_recent()
    lock(actor, using)
    return of(actor)


def _take(user: Any, using: str) -> None:
    if not TOTPDevice.objects.using(using).filter(user=user).delete()[0]:
        raise Refused("SECOND_FACTOR_NONE", user=user.get_username())


def _audit(using: str, action: str, by: Actor, user: Any, reason: str, *, after: bool) -> None:
    audited.append(
        using,
        action,
        "user",
        user.get_username(),
        actor=by.signature,
        reason=reason,
        before={"second_factor": not after},
        after={"second_factor": after},
    )


def _digits(code: str) -> str:
    return "".join(code[:LONGEST].split())
