"""An oracle for claims, recovery and a person's verbs: contract §3, §5, §7, §8 said again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.build import RIVAL
from tests.matrix.contract import IDLE, TERMINAL, Wish, ending, judge
from tests.matrix.world import Columns, Expected, World

RECOVERY = Wish(
    "recover",
    "pending",
    retry=True,
    bump=True,
    code="LEASE_TIMEOUT_RECOVERED",
    spent_code="LEASE_TIMEOUT_MAX_ATTEMPTS",
)


def is_expired(w: World) -> bool:
    """§2: the one expression."""
    row = w.found
    over = row["status"] == "running" and row["lease_expires_at"] <= w.now
    return bool(over or (row["status"] == "running" and row["scheduler_epoch"] < w.epoch))


def lease_lives(w: World) -> bool:
    ends = w.found["lease_expires_at"]
    return ends is not None and ends > w.now


def may_claim(w: World) -> bool:
    """The guards that every claim has besides the row's being due or expired."""
    row = w.found
    return (
        w.claims_open
        and row["cancel_requested_at"] is None
        and row["hold_reason"] == ""
        and not (row["deadline_at"] is not None and row["deadline_at"] <= w.now)
    )


def is_due(w: World) -> bool:
    row = w.found
    return (
        row["status"] in ("pending", "waiting")
        and row["next_attempt_at"] is not None
        and row["next_attempt_at"] <= w.now
    )


def promoted(w: World) -> Columns:
    """A due row that is not ready yet becomes ready, whether or not this claim may take it."""
    row = w.found
    if is_due(w) and row["ready_at"] is None and row["hold_reason"] == "":
        return {"ready_at": row["next_attempt_at"]}
    return {}


def claimed(w: World, *, excused: int = 0) -> Expected:
    row = w.found
    ends = min(filter(None, [w.now + timedelta(seconds=row["lease_seconds"]), row["deadline_at"]]))
    changes = {
        "status": "running",
        "ready_at": None,
        "wait_reason": "",
        "claim_generation": row["claim_generation"] + 1,
        "attempt_count": row["attempt_count"] + 1,
        "attempts_excused": row["attempts_excused"] + excused,
        "worker_id": RIVAL,
        "scheduler_epoch": w.epoch,
        "state_version": row["state_version"] + 1,
        "heartbeat_at": w.now,
        "started_at": w.now,
        "lease_expires_at": ends,
    }
    return Expected("lease", changes, target="running", claims=True)


def claim(w: World) -> Expected:
    """By queue: due rows only, never expired ones."""
    if w.row is None:
        return Expected(None)
    if is_due(w) and may_claim(w):
        return claimed(w)
    return Expected(None, promoted(w))


def claim_job(w: World) -> Expected:
    """By id: a due row, or a takeover where *Endings* would give `pending`; else that ending."""
    if w.row is None:
        return Expected(None)
    if not is_expired(w) or w.found["hold_reason"] == "quarantine":
        return claim(w)
    wish = _recovery(w)
    if judge(w, wish)[0] != "pending":
        expected = ending(w, wish)
        expected.answer = None
        return expected
    if not may_claim(w):
        return Expected(None)
    expected = claimed(w, excused=int(lease_lives(w)))
    expected.attempt = {"status": "lost", "finished_at": w.now, "error_code": "LEASE_TIMEOUT_RECOVERED"}
    expected.slots = {s["slot"]: "unknown" for s in w.slots if s["status"] == "executing"}
    return expected


def _recovery(w: World) -> Wish:
    # Ended by a raise: its lease would still be good, so it costs no attempt.
    return replace(RECOVERY, excused=lease_lives(w))


def _is_late(w: World) -> bool:
    deadline = w.found["deadline_at"]
    return w.found["status"] in IDLE and deadline is not None and deadline <= w.now


def recover(w: World) -> Expected:
    if w.row is None:
        return Expected([])
    if is_expired(w) and w.found["hold_reason"] != "quarantine":
        expected = ending(w, _recovery(w))
    elif w.found["hold_reason"] != "quarantine" and _is_late(w):
        expected = ending(w, Wish("deadline", "failed", code="JOB_DEADLINE_EXCEEDED"))
    else:
        return Expected([])
    expected.answer = [expected.target]
    return expected


def cancel(w: World, *, by: str, why: str) -> Expected:
    if w.row is None:
        return Expected(("refused", "NOT_FOUND"))
    status = w.row["status"]
    if status in TERMINAL:
        return Expected(status if status == "cancelled" else ("refused", "ALREADY_ENDED"))
    if status in IDLE:
        wish = Wish("cancel", "cancelled", forced=True, code="JOB_CANCELLED", delay=None, by=by, why=why)
        expected = ending(w, wish)
        expected.answer = expected.target
        return expected
    if w.row["cancel_requested_at"] is not None:
        return Expected(status)
    return Expected(
        status,
        {
            "cancel_requested_at": w.now,
            "cancel_generation": w.row["cancel_generation"] + 1,
            "cancel_requested_by": by,
            "cancel_reason": why,
            "state_version": w.row["state_version"] + 1,
        },
        target=status,
    )


def force_cancel(w: World, *, seen: int, by: str, why: str) -> Expected:
    if w.row is None:
        return Expected(("refused", "NOT_FOUND"))
    if w.row["status"] in TERMINAL:
        return Expected(("refused", "ALREADY_ENDED"))
    if seen != w.row["state_version"]:
        return Expected(("refused", "VERSION"))
    wish = Wish(
        "force_cancel",
        "cancelled",
        forced=True,
        bump=True,
        excused=w.row["status"] == "running",
        code="JOB_CANCELLED",
        delay=None,
        by=by,
        why=why,
    )
    expected = ending(w, wish)
    expected.answer = expected.target
    return expected


def retry(w: World, *, seen: int) -> Expected:
    if w.row is None:
        return Expected(("refused", "NOT_FOUND"))
    row = w.row
    if row["status"] == "succeeded":
        return Expected(("refused", "SUCCEEDED"))
    if row["status"] not in TERMINAL:
        return Expected(("refused", "NOT_ENDED"))
    if seen != row["state_version"]:
        return Expected(("refused", "VERSION"))
    if row["deadline_at"] is not None and row["deadline_at"] <= w.now:
        return Expected(("refused", "DEADLINE_PASSED"))
    blocked = row["unmet_edges"] > 0
    target = "blocked" if blocked else "pending"
    changes = {
        "status": target,
        "state_version": row["state_version"] + 1,
        "attempts_excused": row["attempt_count"],
        "next_attempt_at": None if blocked else w.now,
        "ready_at": None if blocked or row["hold_reason"] else w.now,
        "started_at": None,
        "finished_at": None,
        "wait_ends_at": None,
        "cancel_requested_at": None,
        "cancel_requested_by": "",
        "cancel_reason": "",
        "error_code": "",
        "error_message": "",
    }
    return Expected(target, changes, target=target)


def revise(w: World, *, seen: int, text: str, digest: str) -> Expected:
    if w.row is None:
        return Expected(("refused", "NOT_FOUND"))
    row = w.row
    if row["status"] in ("succeeded", "uncertain"):
        return Expected(("refused", row["status"].upper()))
    if seen != row["state_version"]:
        return Expected(("refused", "VERSION"))
    if row["open_effects"]:
        return Expected(("refused", "EFFECT_OPEN"))
    changes = {
        "input": text,
        "input_digest": digest,
        "revision": row["revision"] + 1,
        "state_version": row["state_version"] + 1,
    }
    if row["wait_reason"] == "approval":
        changes |= {"next_attempt_at": w.now, "wait_reason": "timer"}
    slots = {s["slot"]: "abandoned" for s in w.slots if s["status"] in ("prepared", "absent")}
    return Expected(row["revision"] + 1, changes, slots=slots, target=row["status"])


def hold(w: World) -> Expected:
    if w.row is None:
        return Expected(("refused", "NOT_FOUND"))
    if w.row["status"] in TERMINAL:
        return Expected(("refused", "ALREADY_ENDED"))
    if w.row["hold_reason"] == "operator":
        return Expected(False)
    version = w.row["state_version"] + 1
    return Expected(True, {"hold_reason": "operator", "ready_at": None, "state_version": version})


def unhold(w: World) -> Expected:
    if w.row is None:
        return Expected(("refused", "NOT_FOUND"))
    if w.row["status"] in TERMINAL:
        return Expected(("refused", "ALREADY_ENDED"))
    if w.row["hold_reason"] == "":
        return Expected(False)
    ready = w.row["next_attempt_at"] if is_due(w) else None
    version = w.row["state_version"] + 1
    return Expected(True, {"hold_reason": "", "ready_at": ready, "state_version": version})


def claim_job_refused(w: World) -> Expected:
    """A claim that its epoch refuses takes nothing, but an ending that is due by then is performed."""
    if w.row is None:
        return Expected(None)
    if is_expired(w) and w.found["hold_reason"] != "quarantine":
        wish = _recovery(w)
        if judge(w, wish)[0] != "pending":
            expected = ending(w, wish)
            expected.answer = None
            return expected
        return Expected(None)
    return Expected(None, promoted(w))
