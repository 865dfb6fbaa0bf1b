"""A raise of the epoch by two people, where the installation asks for it (INTERLOCK_RAISE_SECOND_PERSON).

One asks, on the epoch and the price that he sees; nothing happens. Another confirms, and the raise and the
use of the proposal are one transaction. A proposal is good for one epoch, for an hour, and once.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db import DEFAULT_DB_ALIAS

from jobs import canon
from jobs.ledger import raising as rows
from jobs.ledger.session import Session, transact
from jobs.models import RaiseProposal, Scheduler
from jobs.operations import cluster, exposure
from jobs.operations.actor import APPROVE, RAISE, Actor, admit, still
from jobs.outcomes import Refused
from jobs.verbs import audited
from jobs.verbs.base import need_reason
from jobs.verbs.cluster import Approval
from jobs.vocabulary import JOB

GOOD_FOR = 3600
"""Seconds in which the second person has to answer: what a raise costs is soon another price."""
NAMED = 5
BACKEND = "django.contrib.auth.backends.ModelBackend"


def propose(
    *,
    actor: Any,
    expected: int,
    reason: str,
    floor: int = 0,
    close_claims: bool = False,
    using: str = DEFAULT_DB_ALIAS,
) -> RaiseProposal:
    """Ask for a raise of the epoch `expected`; nothing is raised. Asks a recent log-in.

    Raises Refused NOT_PERMITTED, RAISE_NEEDS_NOBODY where one person is enough, EPOCH_MOVED, and
    RAISE_ASKED naming who asked for one that is still open.
    """
    need_reason(reason)
    if not cluster.takes_two():
        raise Refused("RAISE_NEEDS_NOBODY")

    def work(session: Session) -> RaiseProposal:
        person = admit(actor, RAISE, recent=True)
        price = exposure.of_all(using).document()
        proposal_id = rows.propose(
            session,
            expected=expected,
            floor=floor,
            close_claims=close_claims,
            reason=reason,
            price=canon.canonical(price),
            by=person.name,
            account=str(person.user.pk),
            seconds=GOOD_FOR,
        )
        if proposal_id is None:
            raise _taken(expected, using)
        after = {
            "proposal": str(proposal_id),
            "epoch": expected,
            "floor": floor,
            "close_claims": close_claims,
        }
        _audit(session, "propose_raise", person, reason, None, {**after, "price": price})
        return RaiseProposal.objects.using(using).get(pk=proposal_id)

    return transact(work, using=using, vocabulary=JOB, durable=False)


def approve(proposal_id: uuid.UUID, *, actor: Any, reason: str, using: str = DEFAULT_DB_ALIAS) -> int:
    """Confirm as a second person what another asked for, and raise the epoch; returns the new one.

    Takes the permission to raise it or to approve rulings, and a recent log-in; who asked must still be one
    who may. Raises Refused NOT_PERMITTED, USER_INACTIVE, SELF_APPROVAL, RAISE_UNKNOWN, RAISE_DECIDED,
    EPOCH_MOVED, SCHEDULER_HELD.
    """
    need_reason(reason)
    person = admit(actor, RAISE, APPROVE, recent=True)
    proposal = find(proposal_id, using=using)
    if is_own(proposal, person.user):
        raise Refused("SELF_APPROVAL", user=person.name)
    if proposal.decision:
        raise Refused("RAISE_DECIDED")
    still(proposal.account, RAISE, beside=person)
    return cluster.unless_held(
        lambda verbs: verbs.raise_epoch(
            expected=proposal.epoch,
            floor=proposal.floor,
            claims_open=False if proposal.close_claims else None,
            actor=proposal.by,
            reason=proposal.reason,
            approval=Approval(proposal.pk, person.name, person.signature, reason),
        ),
        using,
    )


def reject(proposal_id: uuid.UUID, *, actor: Any, reason: str, using: str = DEFAULT_DB_ALIAS) -> None:
    """Decline what another asked for, or take back what one asked for oneself; nothing is raised.

    Raises Refused NOT_PERMITTED, RAISE_UNKNOWN, RAISE_DECIDED.
    """
    need_reason(reason)

    def work(session: Session) -> None:
        person = admit(actor, RAISE, APPROVE)
        proposal = find(proposal_id, using=using)
        if not rows.decide(session, proposal.pk, "rejected", by=person.name, note=reason):
            raise Refused("RAISE_DECIDED")
        before = {"proposal": str(proposal.pk), "epoch": proposal.epoch, "by": proposal.by}
        _audit(session, "reject_raise", person, reason, before, {"decision": "rejected"})

    transact(work, using=using, vocabulary=JOB, durable=False)


def find(proposal_id: uuid.UUID, *, using: str = DEFAULT_DB_ALIAS) -> RaiseProposal:
    """Return one that was asked for; raises Refused RAISE_UNKNOWN."""
    found = RaiseProposal.objects.using(using).filter(pk=proposal_id).first()
    if found is None:
        raise Refused("RAISE_UNKNOWN", proposal_id=str(proposal_id))
    return found


def told(proposal: RaiseProposal) -> dict[str, Any]:
    """Return one that was asked for, for machines."""
    names = ("id", "epoch", "floor", "close_claims", "reason", "by", "at", "expires_at")
    return {name: getattr(proposal, name) for name in names}


def open_now(now: datetime, epoch: int, *, using: str = DEFAULT_DB_ALIAS) -> RaiseProposal | None:
    """Return what waits for a second person: asked for this epoch, and not run out.

    Asks the database nothing where one person is enough.
    """
    if not cluster.takes_two():
        return None
    return RaiseProposal.objects.using(using).filter(decision="", epoch=epoch, expires_at__gt=now).first()


def is_own(proposal: RaiseProposal, user: Any) -> bool:
    """Return whether this person asked for it."""
    return proposal.account == str(user.pk) or proposal.by == user.get_username()


def others(user: Any) -> list[str]:
    """Return the names of people who could be the second one, NAMED at most."""
    people = get_user_model()._default_manager  # noqa: SLF001
    found: set[str] = set()
    for permission in (RAISE, APPROVE):
        holding = people.with_perm(permission, backend=BACKEND).filter(is_staff=True).exclude(pk=user.pk)
        found |= set(holding.order_by("username").values_list("username", flat=True)[:NAMED])
    return sorted(found)[:NAMED]


def _taken(expected: int, using: str) -> Refused:
    epoch = Scheduler.objects.using(using).values_list("epoch", flat=True).get()
    if epoch != expected:
        return Refused("EPOCH_MOVED", expected=expected, found=epoch)
    other = RaiseProposal.objects.using(using).filter(decision="").first()
    return Refused("RAISE_ASKED", by=other.by if other else "?", at=other.at if other else "?")


def _audit(session: Session, action: str, person: Actor, reason: str, before: Any, after: Any) -> None:
    audited.append(
        session, action, "scheduler", "1", actor=person.signature, reason=reason, before=before, after=after
    )
