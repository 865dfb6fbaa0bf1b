"""Every predicate of the guarded statements made wrong: dropped, turned round, or let slip by a tick.

A predicate is named by the text that stands in the ledger; a mutant replaces that text where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from jobs.ledger import cancel, cases, claim, renew, reports, settle, slots
from jobs.ledger.fence import VERBS

PLACES: dict[str, tuple[ModuleType, str]] = {
    "renew": (renew, "RENEW"),
    "prepare": (slots, "FENCES"),
    "grant": (slots, "FENCES"),
    "stage": (settle, "STAGE"),
    "commit": (settle, "COMMIT"),
    "end": (settle, "FENCES"),
    "acknowledge_cancel": (settle, "FENCES"),
}


@dataclass(frozen=True)
class Mutant:
    """`old` in `module.place` (or its entry `key`) becomes `new`; the cases of `predicate` should notice."""

    statement: str
    predicate: str
    how: str
    module: ModuleType
    place: str
    key: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.statement}: {self.predicate} {self.how}"

    def apply(self, monkeypatch: Any) -> None:
        """Put the mutant in place of the real text until the test is over."""
        holder = getattr(self.module, self.place)
        text = holder[self.key] if self.key else holder
        sets = text[0] if isinstance(text, tuple) else None
        text = text if sets is None else text[1]  # of a ruling: what it writes, what it rests on
        assert text.count(self.old) == 1, f"{self}: stands {text.count(self.old)} times in {self.place}"
        changed = text.replace(self.old, self.new)
        if self.key:
            monkeypatch.setitem(holder, self.key, changed if sets is None else (sets, changed))
        else:
            monkeypatch.setattr(self.module, self.place, changed)


def _mutations(condition: str) -> Iterator[tuple[str, str]]:
    yield "dropped", "1 = 1"
    yield "turned round", f"NOT ({condition})"
    for strict, slack in (
        (" > t.now", " >= t.now"),
        (" <= t.now", " < t.now"),
        (" <= %(asked)s", " < %(asked)s"),
        (" > (SELECT now FROM t)", " >= (SELECT now FROM t)"),
        (" <= (SELECT now FROM t)", " < (SELECT now FROM t)"),
    ):
        if strict in condition:
            yield "let slip by a tick", condition.replace(strict, slack)


def _fence() -> Iterator[Mutant]:
    for verb, guards in VERBS.items():
        module, place = PLACES[verb]
        for guard in guards:
            for how, new in _mutations(guard.text):
                yield Mutant(
                    verb,
                    guard.name,
                    how,
                    module,
                    place,
                    verb if place == "FENCES" else "",
                    guard.line,
                    guard.line.replace(guard.text, new),
                )


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


def mutants() -> list[Mutant]:
    """Return every mutant, each to be noticed by the cases of its own predicate."""
    found = list(_fence())
    for (statement, module, place, key), conditions in OTHERS.items():
        found += [
            Mutant(statement, predicate, f"({condition}) {how}", module, place, key, condition, new)
            for predicate, condition in conditions
            for how, new in _mutations(condition)
        ]
    return found
