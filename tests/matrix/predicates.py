"""The predicates of the guarded statements outside the fence, by the text that stands in the ledger.

The one-row tables' `id = 1` is no guard, and a status that one statement asks for twice is not broken here.
"""

from __future__ import annotations

from types import ModuleType

from jobs.ledger import (
    cancel,
    cases,
    claim,
    drills,
    epoch,
    inquiries,
    renew,
    reports,
    settle,
    slots,
    timeline,
)
from jobs.ledger import worker as workers

FENCED = "w.fenced_at IS NOT NULL"
OLDER = "j.{scheduler_epoch} < (SELECT s.epoch FROM jobs_scheduler s WHERE s.id = 1)"
CLOCK = "(s.clock_high_water IS NULL OR s.clock_high_water <= (SELECT {plus:t.now+1} FROM t))"

Place = tuple[str, ModuleType, str, str]
OTHERS: dict[Place, tuple[tuple[str, str], ...]] = {
    ("renew", renew, "RENEW", ""): (("worker", FENCED),),
    ("commit of a staged result", settle, "COMMIT", ""): (("staged", "a.result_digest = r.result_digest"),),
    ("claim", claim, "READY", ""): (
        ("queue", "j.{queue} = %(queue)s"),
        ("kind", "j.{kind} = %(kind_NUMBER)s"),
    ),
    ("claim by id", claim, "FREE", ""): (
        ("status", "j.{status} IN {in:claimable}"),
        ("ready_at", "j.{ready_at} IS NOT NULL AND j.{ready_at} <= t.now"),
    ),
    ("claim by id", claim, "CLAIM", ""): (
        ("open", "s.epoch = %(epoch)s"),
        ("open", "s.claims_open"),
        ("open", CLOCK),
        ("worker", FENCED),
        ("queue open", "q.paused_at IS NOT NULL"),
        ("queue open", "q.paused_until > (SELECT t.now FROM t)"),
        ("queue open", "q.name = THE_QUEUE"),
        ("cancel", "j.{cancel_requested_at} IS NULL"),
        ("hold", "j.{hold_reason} = ''"),
        ("deadline", "(j.{deadline_at} IS NULL OR j.{deadline_at} > t.now)"),
    ),
    ("takeover", claim, "EXPIRED", ""): (
        ("status", "j.{status} = {:running}"),
        ("expired", "j.{lease_expires_at} <= t.now"),
        ("expired", OLDER),
        ("person", "(j.{open_effects} = 0 OR NOT NEEDS_PERSON)"),
    ),
    ("recover", settle, "FENCES", "expired"): (
        ("status", "j.{status} = {:running}"),
        ("expired", "j.{lease_expires_at} <= t.now"),
        ("expired", OLDER),
        ("generation", "j.{generation} = r.generation"),
        ("quarantine", "j.{hold_reason} <> 'quarantine'"),
    ),
    ("cancel of an idle job", settle, "FENCES", "idle"): (("status", "j.{status} IN {in:idle}"),),
    ("deadline of an idle job", settle, "FENCES", "past_deadline"): (
        ("status", "j.{status} IN {in:idle}"),
        ("deadline", "j.{deadline_at} <= t.now"),
    ),
    ("force_cancel", settle, "FENCES", "unfinished"): (
        ("status", "j.{status} NOT IN {in:terminal}"),
        ("state_version", "j.{state_version} = r.state_version"),
    ),
    ("retry", cancel, "RETRY", ""): (
        ("status", "j.{status} IN {in:retryable}"),
        ("state_version", "j.{state_version} = %(state_version)s"),
        ("deadline", "({deadline} IS NULL OR {deadline} > t.now)"),
        ("abandoned", "s.status = 'abandoned'"),
        ("abandoned", "s.grants > 0"),
        ("abandoned", "s.revision = j.{revision}"),
    ),
    ("revise", cancel, "REVISE", ""): (
        ("status", "j.{status} IN {in:revisable}"),
        ("state_version", "j.{state_version} = %(state_version)s"),
        ("open_effects", "j.{open_effects} = 0"),
    ),
    ("cancel request", cancel, "REQUEST", ""): (
        ("status", "j.{status} IN {in:requestable}"),
        ("first", "j.{cancel_requested_at} IS NULL"),
    ),
    ("hold", cancel, "HOLD", ""): (
        ("hold", "j.{hold_reason} <> %(hold)s"),
        ("status", "j.{status} NOT IN {in:terminal}"),
        ("state_version", "(%(seen)s IS NULL OR j.{state_version} = %(seen)s)"),
    ),
    ("report", reports, "REPORT", ""): (
        ("status", "s.status IN ('executing', 'unknown')"),
        ("attempt", "s.granted_attempt_id = %(attempt)s"),
        ("grant", "s.grant_id = %(grant)s"),
    ),
    ("found", reports, "FOUND", ""): (
        ("version", "s.version = %(version)s"),
        ("status", "s.status = 'unknown'"),
    ),
    ("missed", reports, "MISSED", ""): (
        ("version", "s.version = %(version)s"),
        ("status", "s.status = 'unknown'"),
        ("settled", "{plus:s.sender_ended_at+s.settle_seconds} <= %(asked)s"),
    ),
    ("grant of a slot", slots, "GRANT", ""): (
        ("version", "s.version = %(version)s"),
        ("conflict", "NOT s.in_conflict"),
        (
            "status",
            "(s.status IN ('prepared', 'absent') OR s.status = 'unknown' AND s.replay = 'idempotent')",
        ),
        ("key", "(s.key_valid_until IS NULL OR s.key_valid_until > t.now OR APPROVED)"),
    ),
    ("close a case", cases, "CLOSE", ""): (
        ("open", "closed_at IS NULL"),
        ("effect", "effect_id = %(effect_id)s"),
        ("kind", "kind = %(kind)s"),
    ),
    ("close what is moot", cases, "CLOSE_MOOT", ""): (
        ("open", "closed_at IS NULL"),
        ("job", "job_id {among:ids}"),
        ("kind", "kind <> 'contradiction'"),
    ),
    ("touch a case", cases, "TOUCH", ""): (
        ("open", "closed_at IS NULL"),
        ("effect", "effect_id = %(effect_id)s"),
    ),
    ("void a question", cases, "VOID", ""): (
        ("decision", "decision = ''"),
        ("effect", "effect_id = %(effect_id)s"),
    ),
    ("decide", cases, "DECIDE", ""): (
        ("proposal", "id = %(id)s"),
        ("decision", "decision = ''"),
        ("expiry", "(expires_at IS NULL OR expires_at > (SELECT now FROM t))"),
    ),
    ("come due", cases, "COMES_DUE", ""): (
        ("job", "j.{id} = %(id)s"),
        ("status", "j.{status} = {:waiting}"),
        ("reason", "j.{wait_reason} = 'approval'"),
    ),
    ("take", cases, "TAKE", ""): (
        ("case", "id = %(id)s"),
        ("open", "closed_at IS NULL"),
        ("owner", "(owner IN ('', CAST(%(by)s AS text)) OR owned_until <= (SELECT now FROM t))"),
        ("owner", "owned_until <= (SELECT now FROM t)"),
    ),
    ("give back", cases, "GIVE_BACK", ""): (
        ("case", "id = %(id)s"),
        ("owner", "owner = %(by)s"),
    ),
    ("park", cases, "PARK", ""): (
        ("case", "id = %(id)s"),
        ("open", "closed_at IS NULL"),
    ),
    ("use an approval", slots, "USE_APPROVAL", ""): (
        ("effect", "effect_id = %(id)s"),
        ("verdict", "verdict = 'send'"),
        ("decision", "decision = 'approved'"),
        ("unused", "grant_id IS NULL"),
        ("version", "slot_version = %(version)s"),
        ("digest", "payload_digest = %(digest)s"),
        ("expiry", "expires_at > (SELECT now FROM t)"),
    ),
    ("ruling happened", reports, "RULE", ""): (
        ("effect", "s.id = %(id)s"),
        ("version", "s.version = %(version)s"),
        ("status", "GUARD"),
    ),
    **{
        (f"ruling {verdict}", reports, "RULINGS", verdict): tuple(
            (predicate, text) for predicate, text in conditions
        )
        for verdict, conditions in {
            "did_not_happen": [("status", "s.status = 'unknown'")],
            "abandon": [
                ("status", "s.status IN ('unknown', 'prepared', 'absent')"),
                ("status", "s.in_conflict AND s.status <> 'executing'"),
                ("status", "s.status <> 'executing'"),
            ],
            "use_recorded": [("conflict", "s.in_conflict")],
            "rebind": [
                ("conflict", "s.in_conflict"),
                ("grants", "s.grants = 0"),
                ("status", "s.status IN ('prepared', 'absent')"),
            ],
            "revise": [
                ("conflict", "s.in_conflict"),
                ("status", "s.status NOT IN ('executing', 'unknown')"),
            ],
        }.items()
    },
    ("resolve", reports, "RESOLVE", ""): (
        ("status", "j.{status} = {:uncertain}"),
        ("open_effects", "j.{open_effects} = 0"),
        (
            "conflict",
            "NOT EXISTS (SELECT 1 FROM jobs_effectslot s WHERE s.job_id = j.{id} AND s.in_conflict)",
        ),
    ),
    ("ask", inquiries, "ASK", ""): (
        ("effect", "s.id = %(id)s"),
        ("status", "s.status = 'unknown'"),
        ("inquirable", "s.inquirable"),
        ("first", "s.inquire_asked_at IS NULL"),
        ("cool down", "(s.inquired_at IS NULL OR {plus:s.inquired_at+%(cool_down)s} <= t.now)"),
    ),
    ("begin an inquiry", inquiries, "BEGIN_INQUIRY", ""): (
        ("effect", "s.id = %(id)s"),
        ("status", "s.status = 'unknown'"),
        ("turn", "(s.inquiring_until IS NULL OR s.inquiring_until <= t.now)"),
    ),
    ("prove gone", inquiries, "PROVE_GONE", ""): (
        ("effect", "s.id = %(id)s"),
        ("status", "s.status = 'unknown'"),
        ("first", "s.sender_ended_at IS NULL"),
        ("attempt", "s.granted_attempt_id = %(attempt)s"),
    ),
    ("doubt", reports, "DOUBTED", ""): (
        ("effect", "s.id = %(id)s"),
        ("version", "s.version = %(version)s"),
        ("status", "s.status = 'absent'"),
    ),
    ("record late", reports, "RECORDED_LATE", ""): (
        ("effect", "s.id = %(id)s"),
        ("version", "s.version = %(version)s"),
        ("status", "s.status IN ('absent', 'abandoned')"),
    ),
    ("reopen", slots, "REOPEN", ""): (
        ("effect", "s.id = %(id)s"),
        ("status", "s.status = 'abandoned'"),
        ("grants", "s.grants = 0"),
        ("version", "s.version = %(version)s"),
        ("ruled", "NOT s.ruled_abandon"),
    ),
    ("conflict", slots, "CONFLICT", ""): (
        ("effect", "s.id = %(id)s"),
        ("first", "NOT s.in_conflict"),
        ("digest", "s.payload_digest <> %(digest)s"),
    ),
    ("executing to unknown", slots, "TO_UNKNOWN", ""): (
        ("job", "s.job_id = r.id"),
        ("status", "s.status = 'executing'"),
    ),
    ("close unsent", cancel, "CLOSE_UNSENT", ""): (
        ("job", "s.job_id = r.id"),
        ("status", "s.status IN WORDS"),
    ),
    ("open cases", cases, "UNTOLD", ""): (
        ("job", "s.job_id {among:ids}"),
        ("matter", "(s.status = 'unknown' OR s.in_conflict)"),
        ("told effect", "c.effect_id = s.id"),
        ("told open", "c.closed_at IS NULL"),
        ("told kind", "c.kind = CASE WHEN s.in_conflict THEN 'conflict' ELSE 'unknown' END"),
    ),
    ("raise", epoch, "RAISE", ""): (("expected", "epoch = %(expected)s"),),
    ("open or close claims", epoch, "SET_CLAIMS", ""): (
        ("open", "claims_open <> %(claims_open)s"),
        ("clock", "clock_high_water > (SELECT {plus:now+1} FROM t)"),
        ("clock", "(%(forget_clock)s AND clock_high_water > (SELECT {plus:now+1} FROM t))"),
    ),
    ("keep a timeline", timeline, "KEEP", ""): (("first", "timeline = ''"),),
    ("resume a queue", epoch, "RESUME", ""): (
        ("queue", "name = %(name)s"),
        ("paused", "paused_at IS NOT NULL"),
    ),
    ("fence a worker", workers, "FENCE", ""): (
        ("worker", "id = %(id)s"),
        ("first", "fenced_at IS NULL"),
    ),
    ("end a worker's leases", workers, "END_LEASES", ""): (
        ("worker", "j.{worker_id} = %(worker)s"),
        ("lease", "j.{lease_expires_at} > t.now"),
    ),
    ("forget workers", workers, "PRUNE", ""): (
        ("beat", "beat_at < (SELECT {plus:now+-86400} FROM t)"),
        ("fenced", "(fenced_at IS NULL OR stopped_at IS NOT NULL)"),
    ),
    ("hold many", cancel, "HOLD_MANY", ""): (
        ("job", "j.{id} = r.id"),
        ("hold", "j.{hold_reason} = ''"),
        ("status", "j.{status} NOT IN {in:terminal}"),
    ),
    ("finish a drill", drills, "FINISH", ""): (
        ("drill", "id = %(id)s"),
        ("first", "finished_at IS NULL"),
    ),
    **{
        (name, settle, place, ""): (
            ("attempt", "a.id = r.attempt_id"),
            ("status", "COALESCE(a.status = 'running', false)"),
        )
        for name, place in {
            "close an attempt": "CLOSE_ATTEMPTS",
            "close a committed attempt": "CLOSE_COMMITTED",
            "stage on an attempt": "STAGE_ATTEMPTS",
            "note on an attempt": "NOTE_ATTEMPTS",
        }.items()
    },
    ("promote by id", claim, "PROMOTE_ID", ""): (
        ("ready_at", "j.{ready_at} IS NULL"),
        ("status", "j.{status} IN {in:claimable}"),
        ("hold", "j.{hold_reason} = ''"),
        ("due", "j.{next_attempt_at} <= t.now"),
    ),
}

# What is asked twice on purpose: a claim by queue looks for its rows under READY and PICK_HEAD and asks all
# of it again in CLAIM and FREE; PROMOTE's update repeats the conditions of its pick. Only the second asking
# decides, so only that is broken here, in the statements by id.
REDUNDANT: dict[str, str] = {}
"""Mutants that nobody can notice, by name, with the reason why they change nothing."""
