"""Open matters for people to decide, made by the real verbs at given instants, and the people."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Permission, User

from jobs import canon, effect_kinds
from jobs.effect_kinds import EffectKind, NotFound, Sent, effect_kind
from jobs.models import AuditEntry, Case, EffectSlot, Evidence, Job, Proposal, Ruling
from jobs.operations import cases, rulings
from jobs.operations.cases import View
from jobs.outcomes import Ending, Lease
from jobs.status import EffectStatus, JobStatus, WaitReason
from jobs.verbs.base import HOOKS
from jobs.verbs.effects import EffectRuntime
from jobs.verbs.gate import Word, ask_of
from jobs.vocabulary import JOB
from tests import build
from tests.build import at

PAY = "tests.pay"
PAYLOAD = {"amount": "42.00", "currency": "EUR", "to": "acme"}
SOON = at(1)
LATER = at(10_000)
"""When everything that passes by itself has passed."""

runtime = EffectRuntime(JOB, hooks=HOOKS)


def kind(replay: str = "queryable", **more: Any) -> EffectKind:
    """Register the effect kind of these tests; in flight for 60 s, settled after 100 s."""
    effect_kinds.forget(PAY)
    declared: dict[str, Any] = {
        "settle_after": 100,
        "in_flight": 60,
        "amount": "amount",
        "currency": "currency",
    } | more

    @effect_kind(PAY, replay=replay, label="pay {to}", target="to", **declared)
    def pay(_request: Any) -> Sent:
        raise AssertionError("nothing is sent by a ruling")

    pay.inquire(lambda _request: NotFound())
    return pay


def gate(
    lease: Lease, payload: Any = None, *, grant: uuid.UUID | None = None, now: datetime = build.T0
) -> Any:
    """Come to the gate of the one effect."""
    ask = ask_of(PAY, "pay", payload or PAYLOAD, limit=10_000, depth=8)
    return runtime.gate(lease, ask, grant_id=(grant or uuid.uuid4()).hex, now=now)


class Matter:
    """One open matter: its job, slot and case as they are now."""

    def __init__(self, lease: Lease, grant: Any = None) -> None:
        self.lease = lease
        self.grant = grant

    @property
    def job(self) -> Job:
        return Job.objects.get(pk=build.id_of(self.lease))

    @property
    def slot(self) -> EffectSlot:
        return EffectSlot.objects.get(job_id=build.id_of(self.lease), revision=self.lease.revision)

    @property
    def case(self) -> Case:
        return Case.objects.order_by("id").filter(job=self.job, closed_at=None)[0]

    def of(self, case_kind: str) -> Case:
        return Case.objects.get(job=self.job, kind=case_kind)

    def look(self, now: datetime = LATER, case: Case | None = None) -> View:
        return cases.look((case or self.case).id, now=now)

    def rule(
        self, verdict: str, actor: Any, *, now: datetime = LATER, view: View | None = None, **more: Any
    ) -> Any:
        """Rule on what is seen at `now`, or on an earlier `view`."""
        seen = view or self.look(now)
        given: dict[str, Any] = {
            "reason_code": "other",
            "reason": "because",
            "seen_version": seen.case.version,
        }
        return rulings.rule(
            seen.case.id, verdict, actor=actor, now=now, **({"snapshot": seen.snapshot} | given | more)
        )

    def approve(self, actor: Any, *, now: datetime = LATER, view: View | None = None, **more: Any) -> Any:
        seen = view or self.look(now)
        proposal = more.pop("proposal", None) or Proposal.objects.get(case=seen.case, decision="")
        return rulings.approve(
            proposal.id, actor=actor, now=now, snapshot=seen.snapshot, reason="agreed", **more
        )

    def written(self) -> tuple[Any, ...]:
        """Everything that a ruling may write."""
        models = (Job, EffectSlot, Case, Evidence, Ruling, Proposal, AuditEntry)
        return tuple(list(model.objects.order_by("pk").values()) for model in models)  # type: ignore[attr-defined]


def unknown(*, by: str = "", **more: Any) -> Matter:
    """A sending whose sender has said at T0+1 that it knows nothing, and stopped."""
    kind(**more)
    grant = uuid.uuid4()
    lease = build.running(enqueued_by=by)
    assert gate(lease, grant=grant).word == Word.GRANTED
    report(lease, grant, EffectStatus.UNKNOWN)
    assert Job.objects.uncertain(lease, "no answer", now=at(1)).landed
    return Matter(lease, grant)


def lost() -> Matter:
    """A sending whose sender was never heard of again; its lease ran out and was taken back at T0+90."""
    kind("non_replayable", approval="never")
    grant = uuid.uuid4()
    lease = build.running()
    assert gate(lease, grant=grant).word == Word.GRANTED
    Job.objects.runtime.recover(limit=10, now=at(90))
    return Matter(lease, grant)


def conflict(*, sent: str = "", **more: Any) -> Matter:
    """Another payload for the same key; the first was sent and is `unknown` or `committed`, or was not."""
    kind(**more)
    grant = uuid.uuid4()
    lease = build.running()
    assert gate(lease, grant=grant).word == Word.GRANTED if sent else approval_gate(lease)
    if sent:
        report(lease, grant, EffectStatus(sent), response="{}" if sent == "committed" else None)
    other = canon.canonical(PAYLOAD | {"amount": "50.00", "to": "umbrella"})
    slot = EffectSlot.objects.get(job_id=build.id_of(lease))
    ending = Ending.payload_conflict(lease, slot.id, other, canon.digest(other))
    assert Job.objects.runtime.end([ending], now=at(2))[0].landed
    return Matter(lease, grant)


def approval_gate(lease: Lease) -> bool:
    """Bind the payload and send nothing."""
    kind("non_replayable", approval="always")
    return gate(lease).word == Word.APPROVAL


def approval(*, by: str = "") -> Matter:
    """A sending that waits for a person's word since T0+1."""
    kind("non_replayable", approval="always")
    lease = build.running(enqueued_by=by)
    assert gate(lease).word == Word.APPROVAL
    matter = Matter(lease)
    ending = Ending.wait(lease, WaitReason.APPROVAL, seconds=None, effect_id=matter.slot.id)
    assert Job.objects.runtime.end([ending], now=at(1))[0].landed
    assert matter.job.status == JobStatus.WAITING
    return matter


def report(lease: Lease, grant: uuid.UUID, status: EffectStatus, *, now: datetime = SOON, **more: Any) -> Any:
    key = EffectSlot.objects.get(job_id=build.id_of(lease)).id
    return runtime.report(
        key, attempt_id=lease.attempt_id, grant_id=grant.hex, status=status, now=now, **more
    )


def user(name: str, *codenames: str, **fields: Any) -> User:
    """Create somebody who holds these permissions."""
    found = User.objects.create_user(name, **fields)
    found.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return found


def audited() -> list[dict[str, Any]]:
    """Return the audit entries of rulings, `before` and `after` read."""
    entries = AuditEntry.objects.filter(action__startswith="ruling_").order_by("seq").values()
    return [e | {"before": json.loads(e["before"]), "after": json.loads(e["after"])} for e in entries]


DAY = timedelta(days=1)
