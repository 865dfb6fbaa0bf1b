"""Every verb, performed on one job and foretold by the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobs import canon
from jobs.models import Job
from jobs.outcomes import Lease, Outcome, Refused
from jobs.status import WaitReason
from tests.build import KIND, QUEUE, RIVAL, id_of
from tests.matrix import contract, people
from tests.matrix.contract import Wish
from tests.matrix.world import Expected, World

BY: dict[str, Any] = {"actor": "ann", "reason": "because"}
WHO: dict[str, str] = {"by": "ann", "why": "because"}
TEXT, OTHER = '{"ok":1}', '{"ok":2}'
DIGEST, OTHER_DIGEST = canon.digest(TEXT), canon.digest(OTHER)
FINAL, AGAIN = "HANDLER_CONTENT_FAILED", "RUNTIME_HANDLER_EXCEPTION"


@dataclass(frozen=True)
class Verb:
    """`name` as the transition table calls it, `do` performs it, `foretell` asks the oracle."""

    name: str
    do: Callable[[World], Any]
    foretell: Callable[[World], Expected]
    point: str = ""
    """where a refusal is recorded; "" for verbs that show no token and refuse otherwise"""


def _end(name: str, wish: Wish, do: Callable[[Lease, Any], Outcome]) -> Verb:
    return Verb(name, lambda w: do(w.token, w.now), lambda w: contract.end(w, wish), name)


def _seen(w: World, off: int = 0) -> int:
    return (w.row["state_version"] if w.row else 1) + off


def _claim(w: World) -> Any:
    leases = Job.objects.claim(worker_id=RIVAL, queues=[QUEUE], kinds=[KIND], max_claims=5, now=w.now)
    assert len(leases) <= 1
    return leases[0] if leases else None


V = Job.objects
VARIANTS = " of another version", " for longer", " at once"
"""A verb's variant that no relation bears on is tried in the plainest one only."""
VERBS: dict[str, Verb] = {
    "renew": Verb(
        "renew",
        lambda w: V.runtime.renew([w.token], ttl=40, now=w.now)[0],
        lambda w: contract.renew(w, ttl=40),
        "renew",
    ),
    "renew for longer than the job's lease": Verb(
        "renew",
        lambda w: V.runtime.renew([w.token], ttl=900, now=w.now)[0],
        lambda w: contract.renew(w, ttl=900),
        "renew",
    ),
    "stage": Verb(
        "stage",
        lambda w: V.stage(w.token, {"ok": 2}, now=w.now),
        lambda w: contract.stage(w, text=OTHER, digest=OTHER_DIGEST),
        "stage",
    ),
    "commit": Verb(
        "commit",
        lambda w: V.commit(w.token, {"ok": 1}, now=w.now),
        lambda w: contract.commit(w, text=TEXT, digest=DIGEST),
        "commit",
    ),
    "commit another result": Verb(
        "commit",
        lambda w: V.commit(w.token, {"ok": 2}, now=w.now),
        lambda w: contract.commit(w, text=OTHER, digest=OTHER_DIGEST),
        "commit",
    ),
    "commit what was staged": Verb(
        "commit",
        lambda w: V.commit(w.token, staged_digest=DIGEST, now=w.now),
        lambda w: contract.commit(w, text=None, digest=DIGEST),
        "commit",
    ),
    "commit what was not staged": Verb(
        "commit",
        lambda w: V.commit(w.token, staged_digest=OTHER_DIGEST, now=w.now),
        lambda w: contract.commit(w, text=None, digest=OTHER_DIGEST),
        "commit",
    ),
    "fail and retry": _end(
        "fail",
        Wish("fail", "pending", True, code=AGAIN, message="m", spent_code=AGAIN, delay=2.5, at_once=False),
        lambda lease, now: V.fail(lease, AGAIN, "m", retry_after=2.5, now=now),
    ),
    "fail and retry at once": _end(
        "fail",
        Wish("fail", "pending", True, code=AGAIN, spent_code=AGAIN),
        lambda lease, now: V.fail(lease, AGAIN, retry_after=0, now=now),
    ),
    "fail": _end(
        "fail",
        Wish("fail", "failed", code=FINAL, message="no good"),
        lambda lease, now: V.fail(lease, FINAL, "no good", now=now),
    ),
    "fail because of a cancel": _end(
        "fail",
        Wish("fail", "cancelled", code="AI_RUN_CANCELLED"),
        lambda lease, now: V.fail(lease, "AI_RUN_CANCELLED", now=now),
    ),
    "release": _end(
        "release",
        Wish("release", "pending", excused=True),
        lambda lease, now: V.release(lease, now=now),
    ),
    "wait": _end(
        "wait",
        Wish("wait", "waiting", excused=True, wait_reason="provider", delay=7, at_once=False),
        lambda lease, now: V.wait(lease, WaitReason.PROVIDER, seconds=7, now=now),
    ),
    "wait for approval": _end(
        "wait",
        Wish("wait", "waiting", excused=True, wait_reason="approval", delay=None),
        lambda lease, now: V.wait(lease, WaitReason.APPROVAL, now=now),
    ),
    "skip": _end(
        "skip",
        Wish("skip", "skipped", code="NOTHING_TO_DO", message="empty"),
        lambda lease, now: V.skip(lease, "NOTHING_TO_DO", "empty", now=now),
    ),
    "uncertain": _end(
        "uncertain",
        Wish("uncertain", "uncertain", message="no answer came"),
        lambda lease, now: V.uncertain(lease, "no answer came", now=now),
    ),
    "acknowledge_cancel": _end(
        "acknowledge_cancel",
        Wish("acknowledge_cancel", "cancelled", code="JOB_CANCELLED"),
        lambda lease, now: V.acknowledge_cancel(lease, now=now),
    ),
    "claim": Verb("claim", _claim, people.claim),
    "claim_job": Verb(
        "claim", lambda w: V.claim_job(id_of(w.token), worker_id=RIVAL, now=w.now), people.claim_job
    ),
    "claim_job of another version": Verb(
        "claim",
        lambda w: V.claim_job(
            id_of(w.token), worker_id=RIVAL, expected_state_version=_seen(w, -1), now=w.now
        ),
        lambda w: Expected(None),
    ),
    "claim_job under an old epoch": Verb(
        "claim",
        lambda w: V.claim_job(id_of(w.token), worker_id=RIVAL, epoch=w.epoch - 1, now=w.now),
        people.claim_job_refused,
    ),
    "recover": Verb("recover", lambda w: [e.status for e in V.recover(now=w.now)], people.recover),
    "cancel": Verb(
        "cancel",
        lambda w: V.cancel(id_of(w.token), **BY, now=w.now),
        lambda w: people.cancel(w, **WHO),
    ),
    "force_cancel": Verb(
        "force_cancel",
        lambda w: V.force_cancel(id_of(w.token), **BY, state_version=_seen(w), now=w.now),
        lambda w: people.force_cancel(w, seen=_seen(w), **WHO),
    ),
    "force_cancel of another version": Verb(
        "force_cancel",
        lambda w: V.force_cancel(id_of(w.token), **BY, state_version=_seen(w, -1), now=w.now),
        lambda w: people.force_cancel(w, seen=_seen(w, -1), **WHO),
    ),
    "retry": Verb(
        "retry",
        lambda w: V.retry(id_of(w.token), **BY, state_version=_seen(w), now=w.now),
        lambda w: people.retry(w, seen=_seen(w)),
    ),
    "retry of another version": Verb(
        "retry",
        lambda w: V.retry(id_of(w.token), **BY, state_version=_seen(w, 1), now=w.now),
        lambda w: people.retry(w, seen=_seen(w, 1)),
    ),
    "revise": Verb(
        "revise",
        lambda w: V.revise(id_of(w.token), {"x": 3}, **BY, state_version=_seen(w), now=w.now),
        lambda w: people.revise(w, seen=_seen(w), text='{"x":3}', digest=canon.digest('{"x":3}')),
    ),
    "revise of another version": Verb(
        "revise",
        lambda w: V.revise(id_of(w.token), {"x": 3}, **BY, state_version=_seen(w, -1), now=w.now),
        lambda w: people.revise(w, seen=_seen(w, -1), text="", digest=""),
    ),
    "hold": Verb("hold", lambda w: V.hold(id_of(w.token), **BY, now=w.now), people.hold),
    "unhold": Verb("unhold", lambda w: V.unhold(id_of(w.token), **BY, now=w.now), people.unhold),
}


def perform(verb: Verb, w: World) -> Any:
    """Do it, and return the answer in comparable form."""
    try:
        answer = verb.do(w)
    except Refused as refusal:
        return ("refused", refusal.code)
    return "lease" if isinstance(answer, Lease) else answer
