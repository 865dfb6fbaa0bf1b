"""Tokens of the API: issued and ended by one entitled person, audited, their secret told once.

Who issues a token lends its owner's rights. So nobody issues one for somebody who may do more than himself,
and one that takes part in rulings only for himself: else the two persons of a decision could be one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import DEFAULT_DB_ALIAS, transaction
from django.utils import timezone

from jobs import audit
from jobs.canon import Json
from jobs.handlers import QUEUE
from jobs.models import ApiToken
from jobs.operations.actor import TOKENS, admit
from jobs.outcomes import Refused
from jobs.permissions import NEEDS
from jobs.verbs import audited
from jobs.verbs.base import need_reason

LONGEST_DAYS = 3650
LONGEST_NAME = 100
PERSONAL = "cases:act"
"""A scope that nobody holds for somebody else."""


def issue(
    name: str,
    *,
    actor: Any,
    owner: Any,
    scopes: Sequence[str],
    queues: Sequence[str] = (),
    days: int = 90,
    reason: str,
    using: str = DEFAULT_DB_ALIAS,
) -> tuple[ApiToken, str]:
    """Issue a token of `owner`, good for `days`; returns it with its secret, which is never readable again.

    Raises Refused TOKEN_NAME, TOKEN_SCOPES, TOKEN_QUEUES, TOKEN_DAYS, TOKEN_LACKS, TOKEN_ABOVE,
    TOKEN_PERSONAL, USER_INACTIVE, and what `admit` does; through the console it asks a recent log-in.
    """
    need_reason(reason)
    _check(name, scopes, queues, days)
    with transaction.atomic(using):
        by = admit(actor, TOKENS, recent=True)
        _may_be_issued(by.user, owner, scopes)
        expires = timezone.now() + timedelta(days=days)
        token, secret = ApiToken.objects.db_manager(using).issue(
            name, user=owner, scopes=[*scopes], queues=[*queues], expires_at=expires
        )
        told: Json = {
            "name": name,
            "owner": owner.get_username(),
            "prefix": token.prefix,
            "scopes": [*scopes],
            "queues": [*queues],
            "expires_at": audit.stamp(expires),
        }
        audited.append(
            using,
            "issue_token",
            "token",
            token.pk,
            actor=by.signature,
            reason=reason,
            before=None,
            after=told,
        )
    return token, secret


def revoke(token_id: int, *, actor: Any, reason: str, using: str = DEFAULT_DB_ALIAS) -> ApiToken:
    """End a token: the very next request with it is refused. Raises Refused TOKEN_UNKNOWN."""
    need_reason(reason)
    with transaction.atomic(using):
        by = admit(actor, TOKENS)
        live = ApiToken.objects.using(using).filter(pk=token_id, revoked_at=None)
        if not live.update(revoked_at=timezone.now()):
            raise Refused("TOKEN_UNKNOWN", token=token_id)
        token: ApiToken = ApiToken.objects.using(using).get(pk=token_id)
        audited.append(
            using,
            "revoke_token",
            "token",
            token.pk,
            actor=by.signature,
            reason=reason,
            before={"revoked": False},
            after={"revoked": True},
        )
    return token


def state(token: ApiToken) -> str:
    """Return `live`, `expired` or `revoked`."""
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= timezone.now() else "live"


def _check(name: str, scopes: Sequence[str], queues: Sequence[str], days: int) -> None:
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise Refused("TOKEN_NAME", limit=LONGEST_NAME)
    unknown = [scope for scope in scopes if scope not in ApiToken.SCOPES]
    if unknown or not scopes:
        raise Refused("TOKEN_SCOPES", known=", ".join(ApiToken.SCOPES))
    if odd := [queue for queue in queues if not QUEUE.fullmatch(queue)]:
        raise Refused("TOKEN_QUEUES", queue=odd[0])
    if not 1 <= days <= LONGEST_DAYS:
        raise Refused("TOKEN_DAYS", most=LONGEST_DAYS)


def _may_be_issued(issuer: Any, owner: Any, scopes: Sequence[str]) -> None:
    name = owner.get_username()
    if not owner.is_active:
        raise Refused("USER_INACTIVE", user=name)
    # A token that could do nothing would be found out far from here.
    lacking = [NEEDS[scope] for scope in scopes if scope in NEEDS and not owner.has_perm(NEEDS[scope])]
    if lacking:
        raise Refused("TOKEN_LACKS", user=name, permissions=", ".join(lacking))
    if owner.pk == issuer.pk:
        return
    if PERSONAL in scopes:
        raise Refused("TOKEN_PERSONAL", scope=PERSONAL)
    if not owner.get_all_permissions() <= issuer.get_all_permissions():
        raise Refused("TOKEN_ABOVE", user=name)
