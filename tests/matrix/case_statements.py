"""The statements on cases, proposals and rulings: each predicate falsified alone, with its boundaries."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from jobs.ledger import cases, reports, slots
from jobs.ledger.session import Session
from jobs.status import JobStatus
from tests import build
from tests.build import TICK, at
from tests.matrix.rows import another_row, edit_row, writes
from tests.matrix.trial import NOTHING, UNCHANGED, Case, Change, Statement, Trial, edited, given, instant

OTHER = uuid.UUID(int=1)
GRANT = uuid.UUID(int=2)
SECONDS = 20
"""How long a question, or the taking of a case, stands; both are as old as ten seconds."""


def _matter(kind: str = "unknown", status: str = "unknown", **columns: Any) -> Trial:
    """An effect that is a person's matter: an open case about it, and a question to a second person."""
    trial = Trial(build.running(), at(10 + SECONDS) - TICK)
    effect = build.effect(trial.lease, status=status, **columns)

    def work(session: Session) -> tuple[Any, Any]:
        case_id = cases.open_one(session, effect, kind)
        return case_id, cases.propose(session, case_id, effect, "send", by="ann", seconds=SECONDS)

    case_id, proposal = build.ledger(work, now=at(10))
    trial.given |= {"effect": effect, "case": case_id, "proposal": proposal, "kind": kind, "version": 1}
    trial.given |= {"job": trial.lease.job_id, "digest": "0" * 64}
    return trial


def _waits() -> Trial:
    trial = Trial(build.running(), at(30))
    build.end_waiting_for_approval(trial.lease)
    trial.given["job"] = trial.lease.job_id
    return trial


def _take(session: Session, asked: dict[str, Any], by: str = "ben", seconds: int = 60) -> None:
    cases.take(session, asked["case"], by=by, seconds=seconds)


def _taken() -> Trial:
    trial = _matter()
    build.ledger(lambda s: _take(s, trial.given, "ann", SECONDS), now=at(10))
    return trial


def _rule(verdict: str, **values: Any) -> Callable[[Trial], str]:
    return writes(lambda s, t: reports.rule(s, t["effect"], t["version"], verdict, **values))


def _slot(**columns: Any) -> Change:
    return edit_row("effect", **columns)


CLOSED = Case("open", "closed", edit_row("case", closed_at=at(5), closed_as="ruled"), NOTHING)
OTHER_CASE = Case("case", "another", another_row(case=OTHER), NOTHING)
OTHER_EFFECT = Case("effect", "another", another_row(effect="another"), NOTHING)
OTHER_VERSION = Case("version", "another", given(version=2), NOTHING)
DECIDED = {"decision": "rejected", "decided_at": at(11), "decided_by": "ben"}
APPROVED = {"decision": "approved", "decided_at": at(11), "decided_by": "ben"}
SLOT: dict[str, Any] = {"conflict_digest": "1" * 64, "conflict_payload": "1", "in_conflict": True}
NEITHER = ("label", "target", "currency")


def _approved() -> Trial:
    trial = _matter("approval", "prepared", grants=0)
    edit_row("proposal", **APPROVED)(trial)
    return trial


def _ruling(verdict: str, make: Callable[[], Trial], *cases_of: Case, **values: Any) -> Statement:
    own = (UNCHANGED, OTHER_VERSION, OTHER_EFFECT, *cases_of)
    return Statement(f"ruling {verdict}", make, _rule(verdict, **values), own)


def _status(title: str, landed: bool = False, **columns: Any) -> Case:
    return Case("status", title, _slot(**columns), "" if landed else NOTHING)


CASES = (
    Statement(
        "close a case",
        _matter,
        writes(lambda s, t: cases.close(s, t["effect"], t["kind"], "ruled")),
        (UNCHANGED, CLOSED, OTHER_EFFECT, Case("kind", "another", another_row(kind="conflict"), NOTHING)),
    ),
    Statement(
        "close what is moot",
        _matter,
        writes(lambda s, t: cases.close_moot(s, [t["job"]])),
        (
            UNCHANGED,
            CLOSED,
            Case("job", "another", another_row(job=OTHER.hex), NOTHING),
            Case("kind", "a contradiction", edit_row("case", kind="contradiction"), NOTHING),
        ),
    ),
    Statement(
        "touch a case",
        _matter,
        writes(lambda s, t: cases.touch(s, t["effect"])),
        (UNCHANGED, CLOSED, OTHER_EFFECT),
    ),
    Statement(
        "void a question",
        _matter,
        writes(lambda s, t: cases.void(s, t["effect"])),
        (UNCHANGED, OTHER_EFFECT, Case("decision", "made", edit_row("proposal", **DECIDED), NOTHING)),
    ),
    Statement(
        "decide",
        _matter,
        writes(lambda s, t: cases.decide(s, t["proposal"], "approved", by="ben", note="")),
        (
            UNCHANGED,
            Case("proposal", "another", another_row(proposal=OTHER), NOTHING),
            Case("decision", "made", edit_row("proposal", **DECIDED), NOTHING),
            Case("expiry", "is now", instant(at(10 + SECONDS)), NOTHING),
            Case("expiry", "none", edit_row("proposal", expires_at=None)),
        ),
    ),
    Statement(
        "come due",
        _waits,
        writes(lambda s, t: cases.come_due(s, t["job"])),
        (
            UNCHANGED,
            Case("job", "another", another_row(job=OTHER), NOTHING),
            Case("reason", "a timer", edited(wait_reason="timer", next_attempt_at=at(40)), NOTHING),
            Case("status", "pending", edited(status=JobStatus.PENDING), NOTHING, ("job_waiting_has_reason",)),
        ),
    ),
    Statement(
        "take",
        _taken,
        writes(lambda s, t: _take(s, t, t.get("by", "ann"))),
        (
            UNCHANGED,
            CLOSED,
            OTHER_CASE,
            Case("owner", "another's", given(by="ben"), NOTHING),
            Case("owner", "nobody's", edit_row("case", owner="", owned_until=None)),
            Case(
                "owner",
                "another's until now",
                lambda t: (given(by="ben")(t), instant(at(10 + SECONDS))(t)),
            ),
        ),
    ),
    Statement(
        "give back",
        _taken,
        writes(lambda s, t: cases.give_back(s, t["case"], by=t.get("by", "ann"))),
        (UNCHANGED, OTHER_CASE, Case("owner", "another's", given(by="ben"), NOTHING)),
    ),
    Statement(
        "park",
        _matter,
        writes(lambda s, t: cases.park(s, t["case"], at(99))),
        (UNCHANGED, CLOSED, OTHER_CASE),
    ),
    Statement(
        "use an approval",
        _approved,
        writes(
            lambda s, t: s.run(
                slots.USE_APPROVAL, id=t["effect"], grant=GRANT, version=t["version"], digest=t["digest"]
            )
        ),
        (
            UNCHANGED,
            OTHER_VERSION,
            OTHER_EFFECT,
            Case("digest", "another", given(digest="1" * 64), NOTHING),
            Case("verdict", "another", edit_row("proposal", verdict="did_not_happen"), NOTHING),
            Case("decision", "rejected", edit_row("proposal", **DECIDED), NOTHING),
            Case("unused", "used", edit_row("proposal", grant_id=OTHER), NOTHING),
            Case("expiry", "is now", instant(at(10 + SECONDS)), NOTHING),
        ),
    ),
    _ruling("happened", _matter, _status("absent", status="absent"), response="1", reference="r"),
    _ruling("did_not_happen", _matter, _status("executing", status="executing")),
    _ruling(
        "abandon",
        _matter,
        _status("committed", status="committed", response="1"),
        _status("executing", status="executing"),
        _status("executing, in conflict", status="executing", **SLOT),
        _status("committed, in conflict", landed=True, status="committed", response="1", **SLOT),
    ),
    _ruling(
        "use_recorded",
        lambda: _matter("conflict", "committed", **SLOT),
        Case("conflict", "none", _slot(in_conflict=False), NOTHING),
    ),
    _ruling(
        "rebind",
        lambda: _matter("conflict", "prepared", grants=0, **SLOT),
        Case("conflict", "none", _slot(in_conflict=False), NOTHING),
        Case("grants", "one", _slot(grants=1), NOTHING),
        _status("unknown", status="unknown"),
        amount=None,
        **dict.fromkeys(NEITHER, "x"),
    ),
    _ruling(
        "revise",
        lambda: _matter("conflict", "committed", **SLOT),
        Case("conflict", "none", _slot(in_conflict=False), NOTHING),
        _status("unknown", status="unknown"),
        _status("executing", status="executing"),
    ),
)
