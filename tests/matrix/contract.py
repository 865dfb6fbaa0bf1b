"""An oracle for the holder's verbs: contract §3 (*Endings*) and §4 said again, apart from the code.

Nothing here calls what is under test; it reads a World and says what must come of it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from jobs.outcomes import Code, Outcome
from jobs.status import JobStatus
from tests.matrix.world import Columns, Expected, World

# The table of §4: which parts each verb asks for.
ASKS = {
    "renew": {"EPOCH", "CANCEL", "TIME"},
    "stage": {"EPOCH", "CANCEL", "INPUT", "TIME", "HOLD"},
    "commit": {"EPOCH", "CANCEL", "INPUT", "TIME", "HOLD", "EFFECTS", "RESULT"},
    "end": {"EPOCH", "TIME"},
    "acknowledge_cancel": {"REQUEST"},
}
TERMINAL = {"succeeded", "failed", "cancelled", "skipped"}
IDLE = {"pending", "blocked", "waiting"}


def first_reason(verb: str, w: World, *, staged: bool = True) -> str:
    """Return the reason that §4's order tells first, or "" where the fence holds."""
    asks = ASKS[verb]
    if w.row is None:
        return "NOT_FOUND"
    row, token = w.row, w.token
    runs = row["status"] == "running"
    told = [
        ("EPOCH", "EPOCH" in asks and token.epoch != w.epoch),
        ("GENERATION", token.generation != row["claim_generation"]),
        ("ATTEMPT", not w.held_by_token),
        ("OWNER", runs and token.worker_id != row["worker_id"]),
        ("STATUS", not runs),
        ("EPOCH", "EPOCH" in asks and row["scheduler_epoch"] != token.epoch),
        ("STATUS", "REQUEST" in asks and row["cancel_requested_at"] is None),
        ("CANCELLED", "CANCEL" in asks and row["cancel_generation"] != token.cancel_generation),
        ("STALE_INPUT", "INPUT" in asks and row["revision"] != token.revision),
        ("STALE_INPUT", "INPUT" in asks and row["input_digest"] != token.input_digest),
        ("LEASE_EXPIRED", "TIME" in asks and runs and row["lease_expires_at"] <= w.now),
        ("DEADLINE", "TIME" in asks and row["deadline_at"] is not None and row["deadline_at"] <= w.now),
        ("HELD", "HOLD" in asks and row["hold_reason"] != ""),
        ("EFFECT_UNRESOLVED", "EFFECTS" in asks and row["open_effects"] > 0),
        ("NOT_STAGED", "RESULT" in asks and not staged),
    ]
    return next((reason for reason, applies in told if applies), "")


def refused(reason: str, w: World) -> Expected:
    """A refusal writes nothing but its own row."""
    status = JobStatus(w.row["status"]) if w.row else None
    if reason in ("CANCELLED", "STALE_INPUT"):
        answer = Outcome(
            Code(reason), reason=reason, status=status, cancel_generation=w.found["cancel_generation"]
        )
    else:
        answer = Outcome(Code.FENCED, reason=reason, status=status)
    return Expected(answer, refusal=reason)


def renew(w: World, *, ttl: int) -> Expected:
    if reason := first_reason("renew", w):
        return refused(reason, w)
    row = w.found
    longest = w.now + timedelta(seconds=min(ttl, row["lease_seconds"]))
    ends = max(row["lease_expires_at"], min(filter(None, [longest, row["deadline_at"]])))
    return Expected(
        Outcome(Code.RENEWED, lease_expires_at=ends), {"lease_expires_at": ends, "heartbeat_at": w.now}
    )


def stage(w: World, *, text: str, digest: str) -> Expected:
    if reason := first_reason("stage", w):
        return refused(reason, w)
    return Expected(
        Outcome(Code.STAGED, result_digest=digest),
        attempt={"staged_at": w.now, "result": text, "result_digest": digest},
    )


def commit(w: World, *, text: str | None, digest: str) -> Expected:
    if w.held_by_token and w.found["result_commit_id"] == w.found["attempt_id"]:
        if (w.current or {})["result_digest"] == digest:
            return Expected(
                Outcome(Code.COMMITTED, replay=True, status=JobStatus.SUCCEEDED, result_digest=digest)
            )
        return refused("RESULT_CONFLICT", w)
    attempt = w.attempts.get(uuid.UUID(w.token.attempt_id), {})
    staged = attempt.get("staged_at") is not None and attempt["result_digest"] == digest
    if reason := first_reason("commit", w, staged=staged or text is not None):
        return refused(reason, w)
    row = {
        "status": "succeeded",
        "lease_expires_at": None,
        "result_commit_id": w.found["attempt_id"],
        "finished_at": w.now,
        "worker_id": None,
        "heartbeat_at": None,
        "state_version": w.found["state_version"] + 1,
        "next_attempt_at": None,
        "error_code": "",
        "error_message": "",
    }
    closed = {"status": "committed", "finished_at": w.now, "result_digest": digest}
    return Expected(
        Outcome(Code.COMMITTED, status=JobStatus.SUCCEEDED, result_digest=digest),
        row,
        closed | ({"result": text} if text is not None else {}),
        _slots(w, "succeeded", w.found["claim_generation"]),
        target="succeeded",
    )


@dataclass(frozen=True)
class Wish:
    """How somebody wants an attempt (or an idle job) to end."""

    verb: str
    target: str
    retry: bool = False
    excused: bool = False
    forced: bool = False
    bump: bool = False
    code: str = ""
    message: str = ""
    spent_code: str = ""
    delay: float | None = 0.0
    at_once: bool = True
    wait_reason: str = ""
    wait_total: float = 7 * 86400.0
    by: str = ""
    why: str = ""


def end(w: World, wish: Wish) -> Expected:
    """A holder's ending: the fence, a replay of the same ending, or what *Endings* makes of the wish."""
    fence = "acknowledge_cancel" if wish.verb == "acknowledge_cancel" else "end"
    if reason := first_reason(fence, w):
        if w.held_by_token and w.found["status"] != "running":
            attempt = w.current or {}
            closing = closed_status(wish.verb, w.found["status"])
            if (attempt["status"], attempt["error_code"]) == (closing, wish.code):
                return Expected(Outcome(Code.LANDED, replay=True, status=JobStatus(w.found["status"])))
        return refused(reason, w)
    expected = ending(w, wish)
    expected.answer = Outcome(Code.LANDED, status=JobStatus(expected.target))
    return expected


def judge(w: World, wish: Wish) -> tuple[str, str]:
    """Return the target and the code of *Endings*: the first line that applies."""
    row = w.found
    cancel = wish.forced or row["cancel_requested_at"] is not None
    late = row["deadline_at"] is not None and row["deadline_at"] <= w.now
    used = row["attempt_count"] - row["attempts_excused"] - wish.excused
    spent = used >= row["max_attempts"]
    waited = wish.target == "waiting" and row["wait_ends_at"] is not None and row["wait_ends_at"] <= w.now
    if row["open_effects"] > 0:
        person = any(_only_a_person(slot, w) for slot in w.slots)
        if cancel or late or spent or waited or person or wish.target not in ("pending", "waiting"):
            return "uncertain", wish.code
    if cancel:
        return "cancelled", "JOB_CANCELLED"
    if late:
        return "failed", "JOB_DEADLINE_EXCEEDED"
    if wish.retry and spent:
        return "failed", wish.spent_code
    if waited:
        return "failed", "JOB_WAIT_EXCEEDED"
    return wish.target, wish.code


def ending(w: World, wish: Wish) -> Expected:
    """Return everything an ending writes."""
    row = w.found
    target, code = judge(w, wish)
    due = None if wish.delay is None else w.now + timedelta(seconds=wish.delay)
    first = wish.forced and row["cancel_requested_at"] is None
    changes: Columns = {
        "status": target,
        "error_code": code,
        "error_message": wish.message,
        "lease_expires_at": None,
        "worker_id": None,
        "heartbeat_at": None,
        "state_version": row["state_version"] + 1,
        "claim_generation": row["claim_generation"] + wish.bump,
        "attempts_excused": row["attempts_excused"] + wish.excused,
        "wait_reason": wish.wait_reason if target == "waiting" else "",
        "next_attempt_at": due if target in ("pending", "waiting") else None,
        "ready_at": due if target == "pending" and wish.at_once and not row["hold_reason"] else None,
        "finished_at": w.now if target in TERMINAL else None,
    }
    if target == "waiting" and row["wait_ends_at"] is None:
        changes["wait_ends_at"] = w.now + timedelta(seconds=wish.wait_total)
    if first:
        changes |= {
            "cancel_requested_at": w.now,
            "cancel_generation": row["cancel_generation"] + 1,
            "cancel_requested_by": wish.by,
            "cancel_reason": wish.why,
        }
    slots = _slots(w, target, changes["claim_generation"])
    if target == "uncertain" and row["open_effects"] == 0:
        changes["open_effects"] = 1
    attempt = {}
    if row["status"] == "running":
        attempt = {
            "status": closed_status(wish.verb, target),
            "finished_at": w.now,
            "error_code": wish.code,
            "error_message": wish.message,
        }
    return Expected(None, changes, attempt, slots, target=target)


def closed_status(verb: str, target: str) -> str:
    """Return how the attempt's own row closes."""
    if verb == "recover":
        return "lost"
    if target in ("cancelled", "uncertain"):
        return target
    own = {"fail": "failed", "release": "released", "wait": "waiting", "skip": "skipped"}
    return own.get(verb, {"uncertain": "uncertain"}.get(verb, "cancelled"))


def _slots(w: World, target: str, generation: int) -> dict[str, str]:
    after: dict[str, Any] = {}
    for slot in w.slots:
        if slot["status"] == "executing":
            after[slot["slot"]] = "unknown"
        if slot["status"] == "prepared" and target in TERMINAL:
            after[slot["slot"]] = "abandoned"
    if target == "uncertain" and w.found["open_effects"] == 0:
        after[f"job.{generation}"] = "unknown"
    return after


def _only_a_person(slot: Columns, w: World) -> bool:
    if slot["status"] not in ("executing", "unknown"):
        return False
    expired = slot["key_valid_until"] is not None and slot["key_valid_until"] <= w.now
    mute = slot["replay"] == "queryable" and not slot["inquirable"]
    return slot["replay"] == "non_replayable" or slot["in_conflict"] or expired or mute
