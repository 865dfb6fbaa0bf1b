"""What is asked and learnt of an effect, and what opens it again: each predicate falsified alone."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from jobs.ledger import cancel, cases, inquiries, reports, slots
from jobs.ledger.session import Session
from jobs.models import Case as OpenCase
from tests import build
from tests.build import TICK, at
from tests.matrix.rows import another_row, edit_row, writes
from tests.matrix.trial import NOTHING, UNCHANGED, Case, Change, Statement, Trial, given

OTHER = uuid.UUID(int=1)
COOL_DOWN = 10
PAYLOAD: dict[str, Any] = dict.fromkeys(("payload", "label", "target", "currency", "etag"), "x")


def _with(status: str, **columns: Any) -> Callable[[], Trial]:
    """Build a running job's effect, looked at thirty seconds after the claim."""

    def make() -> Trial:
        trial = Trial(build.running(), at(30))
        trial.given |= {"effect": build.effect(trial.lease, status=status, **columns), "version": 1}
        trial.given |= {"attempt_id": uuid.UUID(trial.lease.attempt_id), "job": trial.lease.job_id}
        return trial

    return make


def _slot(predicate: str, title: str, *, landed: bool = False, **columns: Any) -> Case:
    return Case(predicate, title, edit_row("effect", **columns), "" if landed else NOTHING)


OTHER_EFFECT = Case("effect", "another", another_row(effect="another"), NOTHING)
OTHER_JOB = Case("job", "another", another_row(job=OTHER.hex), NOTHING)
OTHER_VERSION = Case("version", "another", given(version=2), NOTHING)


def _values(given_: dict[str, Any]) -> dict[str, Any]:
    return {"id": given_["effect"], "digest": "1" * 64, "amount": None, **PAYLOAD}


def _conflict(session: Session, given_: dict[str, Any]) -> None:
    slots.conflict(session, given_["effect"], payload="x", digest=given_.get("digest", "1" * 64))


def _open_cases(trial: Trial) -> str:
    before = OpenCase.objects.count()
    build.ledger(lambda session: cases.open_for(session, [trial.given["job"]]), now=trial.now)
    return NOTHING if OpenCase.objects.count() == before else ""


def _told(kind: str, *, closed: bool = False, slot: str = "send") -> Change:
    """Let a case of a kind be there, about this effect or another one of the job."""

    def change(trial: Trial) -> None:
        effect = trial.given["effect"]
        if slot != "send":
            effect = build.effect(trial.lease, status="absent", slot=slot)
        trial.given["case"] = build.ledger(lambda s: cases.open_one(s, effect, kind), now=at(10))
        if closed:
            edit_row("case", closed_at=at(11), closed_as="ruled")(trial)

    return change


INQUIRIES = (
    Statement(
        "ask",
        _with("unknown"),
        writes(lambda s, t: inquiries.ask(s, t["effect"], by="ann", cool_down=COOL_DOWN)),
        (
            UNCHANGED,
            OTHER_EFFECT,
            _slot("status", "settled meanwhile", status="absent"),
            _slot("inquirable", "nobody can ask", inquirable=False),
            _slot("first", "asked for already", inquire_asked_at=at(5), inquire_asked_by="ben"),
            _slot("cool down", "asked a tick too soon", inquired_at=at(30 - COOL_DOWN) + TICK),
            _slot("cool down", "asked just long enough ago", landed=True, inquired_at=at(30 - COOL_DOWN)),
        ),
    ),
    Statement(
        "begin an inquiry",
        _with("unknown"),
        writes(lambda s, t: inquiries.begin_inquiry(s, t["effect"], seconds=5)),
        (
            UNCHANGED,
            OTHER_EFFECT,
            _slot("status", "settled meanwhile", status="absent"),
            _slot("turn", "another one's for a tick", inquiring_until=at(30) + TICK),
            _slot("turn", "another one's until now", landed=True, inquiring_until=at(30)),
        ),
    ),
    Statement(
        "prove gone",
        _with("unknown"),
        writes(lambda s, t: inquiries.prove_gone(s, t["effect"], t["attempt_id"])),
        (
            UNCHANGED,
            OTHER_EFFECT,
            _slot("status", "settled meanwhile", status="absent"),
            _slot("first", "proven before", sender_ended_at=at(5)),
            Case("attempt", "another's", given(attempt_id=OTHER), NOTHING),
        ),
    ),
    Statement(
        "doubt",
        _with("absent"),
        writes(lambda s, t: reports.doubt(s, t["effect"], t["version"])),
        (
            UNCHANGED,
            OTHER_EFFECT,
            OTHER_VERSION,
            _slot("status", "abandoned", status="abandoned"),
        ),
    ),
    Statement(
        "record late",
        _with("abandoned"),
        writes(lambda s, t: reports.record_late(s, t["effect"], t["version"], response="1", reference="r")),
        (
            UNCHANGED,
            OTHER_EFFECT,
            OTHER_VERSION,
            _slot("status", "absent", landed=True, status="absent"),
            _slot("status", "never sent", status="prepared"),
        ),
    ),
    Statement(
        "reopen",
        _with("abandoned", grants=0),
        writes(lambda s, t: slots.reopen(s, _values(t), t["version"])),
        (
            UNCHANGED,
            OTHER_EFFECT,
            OTHER_VERSION,
            _slot("status", "absent", status="absent"),
            _slot("grants", "sent once", grants=1),
            _slot("ruled", "a person said so", ruled_abandon=True),
        ),
    ),
    Statement(
        "conflict",
        _with("prepared", grants=0),
        writes(_conflict),
        (
            UNCHANGED,
            OTHER_EFFECT,
            _slot(
                "first",
                "in conflict already",
                in_conflict=True,
                conflict_payload="2",
                conflict_digest="2" * 64,
            ),
            Case("digest", "the same payload", given(digest="0" * 64), NOTHING),
        ),
    ),
    Statement(
        "executing to unknown",
        _with("executing"),
        writes(lambda s, t: slots.executing_to_unknown(s, [t["job"]])),
        (UNCHANGED, OTHER_JOB, _slot("status", "prepared", status="prepared")),
    ),
    Statement(
        "close unsent",
        _with("prepared", grants=0),
        writes(lambda s, t: cancel.close_unsent(s, [t["job"]])),
        (UNCHANGED, OTHER_JOB, _slot("status", "absent", status="absent")),
    ),
    Statement(
        "open cases",
        _with("unknown"),
        _open_cases,
        (
            UNCHANGED,
            Case("job", "another", given(job=OTHER.hex), NOTHING),
            _slot("matter", "closed", status="absent"),
            _slot(
                "matter",
                "closed, in conflict",
                landed=True,
                status="absent",
                in_conflict=True,
                conflict_payload="2",
                conflict_digest="2" * 64,
            ),
            Case("told", "already", _told("unknown"), NOTHING),
            Case("told effect", "of another effect", _told("unknown", slot="other")),
            Case("told open", "closed since", _told("unknown", closed=True)),
            Case("told kind", "as another kind", _told("contradiction")),
        ),
    ),
)
