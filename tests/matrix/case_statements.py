"""The statements on cases, proposals and rulings: each predicate falsified alone, with its boundaries."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.db import connection

from jobs.ledger import cases, reports, slots
from jobs.ledger.session import Session
from jobs.models import Case as OpenCase
from jobs.models import EffectSlot, Job, Proposal
from jobs.status import JobStatus
from tests import build
from tests.build import TICK, at
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


def _rows(trial: Trial) -> list[Any]:
    asked = (Job, trial.lease.job_id), *((m, trial.given.get(n)) for m, n in ROWS)
    return [list(model._base_manager.filter(pk=key).values()) for model, key in asked]


ROWS: tuple[tuple[Any, str], ...] = ((OpenCase, "case"), (Proposal, "proposal"), (EffectSlot, "effect"))


def _writes(work: Callable[[Session, dict[str, Any]], Any]) -> Callable[[Trial], str]:
    """Run a statement on what is given; it has landed when a row that is ours has changed."""

    def run(trial: Trial) -> str:
        ours = Trial(trial.lease, trial.now, dict(trial.given.get("ours", trial.given)))
        before = _rows(ours)
        build.ledger(lambda session: work(session, trial.given), now=trial.now)
        return NOTHING if _rows(ours) == before else ""

    return run


def _another(**values: Any) -> Change:
    """Ask for another row than ours."""
    return lambda trial: trial.given.update({"ours": dict(trial.given)} | values)


def _edit(model: Any, name: str, **columns: Any) -> Change:
    """Write a row by hand."""

    def change(trial: Trial) -> None:
        field: Any = model._meta.get_field
        values = [field(n).get_db_prep_save(v, connection) for n, v in columns.items()]
        key = model._meta.pk.get_db_prep_save(trial.given[name], connection)
        places = ", ".join(f"{n} = %s" for n in columns)
        with build.unguarded(), connection.cursor() as cursor:
            cursor.execute(f"UPDATE {model._meta.db_table} SET {places} WHERE id = %s", [*values, key])

    return change


def _take(session: Session, asked: dict[str, Any], by: str = "ben", seconds: int = 60) -> None:
    cases.take(session, asked["case"], by=by, seconds=seconds)


def _taken() -> Trial:
    trial = _matter()
    build.ledger(lambda s: _take(s, trial.given, "ann", SECONDS), now=at(10))
    return trial


def _rule(verdict: str, **values: Any) -> Callable[[Trial], str]:
    return _writes(lambda s, t: reports.rule(s, t["effect"], t["version"], verdict, **values))


def _slot(**columns: Any) -> Change:
    return _edit(EffectSlot, "effect", **columns)


CLOSED = Case("open", "closed", _edit(OpenCase, "case", closed_at=at(5), closed_as="ruled"), NOTHING)
OTHER_CASE = Case("case", "another", _another(case=OTHER), NOTHING)
OTHER_EFFECT = Case("effect", "another", _another(effect="another"), NOTHING)
OTHER_VERSION = Case("version", "another", given(version=2), NOTHING)
DECIDED = {"decision": "rejected", "decided_at": at(11), "decided_by": "ben"}
APPROVED = {"decision": "approved", "decided_at": at(11), "decided_by": "ben"}
SLOT: dict[str, Any] = {"conflict_digest": "1" * 64, "conflict_payload": "1", "in_conflict": True}
NEITHER = ("label", "target", "currency")


def _approved() -> Trial:
    trial = _matter("approval", "prepared", grants=0)
    _edit(Proposal, "proposal", **APPROVED)(trial)
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
        _writes(lambda s, t: cases.close(s, t["effect"], t["kind"], "ruled")),
        (UNCHANGED, CLOSED, OTHER_EFFECT, Case("kind", "another", _another(kind="conflict"), NOTHING)),
    ),
    Statement(
        "close what is moot",
        _matter,
        _writes(lambda s, t: cases.close_moot(s, [t["job"]])),
        (
            UNCHANGED,
            CLOSED,
            Case("job", "another", _another(job=OTHER.hex), NOTHING),
            Case("kind", "a contradiction", _edit(OpenCase, "case", kind="contradiction"), NOTHING),
        ),
    ),
    Statement(
        "touch a case",
        _matter,
        _writes(lambda s, t: cases.touch(s, t["effect"])),
        (UNCHANGED, CLOSED, OTHER_EFFECT),
    ),
    Statement(
        "void a question",
        _matter,
        _writes(lambda s, t: cases.void(s, t["effect"])),
        (UNCHANGED, OTHER_EFFECT, Case("decision", "made", _edit(Proposal, "proposal", **DECIDED), NOTHING)),
    ),
    Statement(
        "decide",
        _matter,
        _writes(lambda s, t: cases.decide(s, t["proposal"], "approved", by="ben", note="")),
        (
            UNCHANGED,
            Case("proposal", "another", _another(proposal=OTHER), NOTHING),
            Case("decision", "made", _edit(Proposal, "proposal", **DECIDED), NOTHING),
            Case("expiry", "is now", instant(at(10 + SECONDS)), NOTHING),
            Case("expiry", "none", _edit(Proposal, "proposal", expires_at=None)),
        ),
    ),
    Statement(
        "come due",
        _waits,
        _writes(lambda s, t: cases.come_due(s, t["job"])),
        (
            UNCHANGED,
            Case("job", "another", _another(job=OTHER), NOTHING),
            Case("reason", "a timer", edited(wait_reason="timer", next_attempt_at=at(40)), NOTHING),
            Case("status", "pending", edited(status=JobStatus.PENDING), NOTHING, ("job_waiting_has_reason",)),
        ),
    ),
    Statement(
        "take",
        _taken,
        _writes(lambda s, t: _take(s, t, t.get("by", "ann"))),
        (
            UNCHANGED,
            CLOSED,
            OTHER_CASE,
            Case("owner", "another's", given(by="ben"), NOTHING),
            Case("owner", "nobody's", _edit(OpenCase, "case", owner="", owned_until=None)),
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
        _writes(lambda s, t: cases.give_back(s, t["case"], by=t.get("by", "ann"))),
        (UNCHANGED, OTHER_CASE, Case("owner", "another's", given(by="ben"), NOTHING)),
    ),
    Statement(
        "park",
        _matter,
        _writes(lambda s, t: cases.park(s, t["case"], at(99))),
        (UNCHANGED, CLOSED, OTHER_CASE),
    ),
    Statement(
        "use an approval",
        _approved,
        _writes(
            lambda s, t: s.run(
                slots.USE_APPROVAL, id=t["effect"], grant=GRANT, version=t["version"], digest=t["digest"]
            )
        ),
        (
            UNCHANGED,
            OTHER_VERSION,
            OTHER_EFFECT,
            Case("digest", "another", given(digest="1" * 64), NOTHING),
            Case("verdict", "another", _edit(Proposal, "proposal", verdict="did_not_happen"), NOTHING),
            Case("decision", "rejected", _edit(Proposal, "proposal", **DECIDED), NOTHING),
            Case("unused", "used", _edit(Proposal, "proposal", grant_id=OTHER), NOTHING),
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
