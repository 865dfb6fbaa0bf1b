"""What a provider can settle no person is asked for, and what an outage kept from the database is not
lost."""

from __future__ import annotations

import errno
import json
import uuid
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection

from jobs import spool
from jobs.effect_kinds import NotFound
from jobs.handlers import job
from jobs.models import Case, EffectSlot, Evidence
from jobs.stops import AskLater, what_next
from jobs.verbs.effects import EffectRuntime
from jobs.worker.loop import Worker
from tests.effects.outside import Outside, results, slot, steps, the_job, worker


def nobody_knows(outside: Outside, **more: Any) -> None:
    """Lose an answer, and have the provider deny it for now."""
    outside.kind("queryable", inquiry=True, **more)
    outside.sending = outside.charge_silently
    outside.looking = lambda _request: NotFound()
    outside.handler().enqueue()


def long_ago() -> None:
    """Let the last inquiry be long ago."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_effectslot SET inquired_at = '2020-01-01 00:00:00+00:00'")


def test_what_the_provider_finds_later_moves_the_job_on_and_closes_the_case(outside: Outside) -> None:
    nobody_knows(outside)
    actor = worker()
    steps(actor, 1)
    assert (the_job().status, Case.objects.get().closed_as) == ("uncertain", "")
    outside.looking = outside.look
    long_ago()
    assert actor.reconciler.turn() == 1
    assert (the_job().status, slot().status, Case.objects.get().closed_as) == (
        "pending",
        "committed",
        "resolved",
    )
    steps(worker(), 1)
    assert [*results()] == [{"charged": outside.payload}]
    assert len(outside.done) == 1


def test_a_provider_that_was_just_asked_is_left_alone(outside: Outside) -> None:
    nobody_knows(outside)
    actor = worker()
    steps(actor, 1)
    outside.looking = outside.look
    assert actor.reconciler.turn() == 0
    assert not outside.asked


def test_a_slot_that_another_process_asks_about_is_left_alone(outside: Outside) -> None:
    nobody_knows(outside)
    actor = worker()
    steps(actor, 1)
    long_ago()
    assert actor.reconciler.effects.begin_inquiry(slot().id) is not None
    assert actor.reconciler.effects.begin_inquiry(slot().id) is None
    assert actor.reconciler.turn() == 0


@pytest.mark.parametrize(
    "other",
    [
        {"queues": ["elsewhere"], "kinds": ["tests.bill"]},
        {"queues": ["default"], "kinds": ["tests.other"]},
    ],
)
def test_who_would_not_run_the_job_does_not_ask_about_its_effect(outside: Outside, other: Any) -> None:
    """Another worker may ask another provider, whose "not found" would be taken for proof."""
    nobody_knows(outside)
    steps(worker(), 1)
    long_ago()

    @job("tests.other")
    def another() -> None:
        pass

    outside.looking = outside.look
    assert Worker(**other, concurrency=1).reconciler.turn() == 0
    assert not outside.asked
    assert worker().reconciler.turn() == 1


def test_an_inquiry_that_fails_is_evidence_of_nothing(outside: Outside) -> None:
    nobody_knows(outside)
    actor = worker()
    steps(actor, 1)

    def broken(_request: object) -> None:
        raise ValueError("no JSON")

    outside.looking = broken
    long_ago()
    assert actor.reconciler.turn() == 0
    last = EffectSlot.objects.get().evidence.order_by("-id")[0]
    assert (last.outcome, last.decisive, last.body) == ("no_answer", False, "ValueError: no JSON")
    assert slot().inquiring_until is None


@pytest.fixture
def kept(settings: Any, tmp_path: Any) -> Any:
    settings.SPOOL = tmp_path / "spool"
    settings.INTERLOCK = settings.INTERLOCK | {"REPORT_SECONDS": 0}
    return settings.SPOOL


def test_a_report_that_the_database_would_not_hear_is_kept_and_told_at_the_next_start(
    outside: Outside, kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside.kind("non_replayable", approval="never")
    outside.handler().enqueue()

    def away(*_args: Any, **_kwargs: Any) -> None:
        raise OperationalError("the database is away")

    actor = worker()
    with monkeypatch.context() as outage:
        outage.setattr(EffectRuntime, "report", away)
        steps(actor, 1)
    (path,) = kept.iterdir()
    assert json.loads(path.read_text())["status"] == "committed"
    assert (slot().status, the_job().status) == ("unknown", "uncertain")
    assert worker().reconciler.replay() == 1
    assert [*kept.iterdir()] == []
    assert (slot().status, the_job().status) == ("committed", "pending")
    steps(worker(), 1)
    assert (the_job().status, len(outside.done)) == ("succeeded", 1)


def test_a_report_that_neither_database_nor_disk_takes_is_told_again_until_it_is_heard(
    outside: Outside, kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside.kind("non_replayable", approval="never")
    outside.handler().enqueue()
    kept.touch()  # a file where the folder should be: nothing can be kept in it
    hear, away = EffectRuntime.report, [OperationalError("disk is full") for _ in range(2)]

    def full(*given: Any, **more: Any) -> Any:
        if away:
            raise away.pop()
        return hear(*given, **more)

    monkeypatch.setattr(EffectRuntime, "report", full)
    steps(worker(), 1)
    assert (slot().status, the_job().status, len(outside.done)) == ("committed", "succeeded", 1)


def test_a_report_that_the_database_refuses_is_kept_too(
    outside: Outside, kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside.kind("non_replayable", approval="never")
    outside.handler().enqueue()

    def malformed(*_given: Any, **_more: Any) -> None:
        raise DatabaseError("database disk image is malformed")

    with monkeypatch.context() as broken:
        broken.setattr(EffectRuntime, "report", malformed)
        steps(worker(), 1)
    (path,) = kept.iterdir()
    assert json.loads(path.read_text())["status"] == "committed"


def test_a_disk_that_takes_half_a_report_is_left_without_that_half(
    kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("jobs.spool.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        spool.keep({"effect": "7"})
    assert [*kept.iterdir()] == []


def test_a_kept_file_that_is_no_report_is_left_where_it_is(outside: Outside, kept: Any) -> None:
    outside.handler()
    path = spool.keep({"something": "else"})
    assert worker().reconciler.replay() == 0
    assert path.exists()


def _hex(value: uuid.UUID | None) -> str:
    assert value is not None
    return value.hex


def test_a_kept_report_that_the_database_will_not_have_keeps_nothing_else_from_it(
    outside: Outside, kept: Any
) -> None:
    outside.kind("queryable", inquiry=True, settle_after=None)
    outside.sending = outside.charge_silently
    outside.looking = lambda _request: NotFound()
    outside.handler().enqueue()
    actor = worker()
    steps(actor, 1)
    grant = {"attempt_id": _hex(slot().granted_attempt_id), "grant_id": _hex(slot().grant_id)}
    said = {"effect": slot().id, "status": "committed", "response": "{}", "reference": "ch_1", **grant}
    bad = spool.keep(said | {"attempt_id": "no id"})
    good = spool.keep(said)
    actor.reconciler.turn()
    assert (bad.exists(), good.exists()) == (connection.vendor == "postgresql", False)
    assert (slot().status, slot().reference) == ("committed", "ch_1")


def test_a_job_that_a_person_said_has_happened_commits_that_answer_without_running(outside: Outside) -> None:
    ran: list[int] = []

    def nobody(ctx: Any) -> None:
        ran.append(1)

    from jobs.handlers import job

    nobody.__qualname__ = "nobody-ruled"
    job("tests.bill")(nobody).enqueue()
    from jobs.models import Job

    lease = Job.objects.claim(worker_id="w", queues=["default"], kinds=["tests.bill"])[0]
    Job.objects.uncertain(lease, "no idea")
    from jobs.ledger import reports
    from jobs.ledger.session import transact
    from jobs.verbs.effects import move_on
    from jobs.vocabulary import JOB

    def rule(session: Any) -> None:
        session.lock([the_job().pk])
        reports.rule(
            session, slot().id, slot().version, "happened", response='{"by":"hand"}', reference="r-1"
        )
        reports.count_open(session, the_job().pk)
        move_on(session, the_job().pk.hex, using="default")

    transact(rule, using="default", vocabulary=JOB)
    assert the_job().status == "pending"
    steps(worker(), 1)
    assert ran == []
    assert [*results()] == [{"by": "hand"}]


def test_a_provider_that_says_the_same_again_spoils_nobodys_ruling(outside: Outside) -> None:
    from jobs.operations import cases

    nobody_knows(outside)
    actor = worker()
    steps(actor, 1)
    case = Case.objects.get()
    before = cases.look(case.pk)
    long_ago()
    assert actor.reconciler.turn() == 0
    after = cases.look(case.pk)
    assert len(after.evidence) == len(before.evidence) + 1
    assert (after.snapshot, after.case.version) == (before.snapshot, before.case.version)
    outside.looking = lambda _request: (_ for _ in ()).throw(TimeoutError)
    long_ago()
    actor.reconciler.turn()
    assert cases.look(case.pk).snapshot != before.snapshot


def test_a_run_that_finds_the_provider_being_asked_waits_for_the_answer(outside: Outside) -> None:
    outside.kind("queryable", inquiry=True, settle_after=0)
    outside.sending = outside.charge_silently
    outside.looking = lambda _request: (_ for _ in ()).throw(TimeoutError)
    outside.handler().enqueue()
    steps(worker(), 1)
    assert the_job().status == "uncertain"
    outside.looking = outside.look
    reconciler = worker().reconciler
    begun = reconciler.effects.begin_inquiry(slot().id)
    assert begun is not None
    assert what_next(begun[0]).args == AskLater(1.0).args
    assert reconciler.effects.begin_inquiry(slot().id) is None


@pytest.mark.parametrize("ends", [SystemExit(3), GeneratorExit()], ids=["exit", "generator"])
def test_an_inquiry_that_would_end_the_process_is_no_answer(outside: Outside, ends: BaseException) -> None:
    nobody_knows(outside)
    steps(worker(), 1)

    def leaves(_request: object) -> NotFound:
        raise ends

    outside.looking = leaves
    long_ago()
    assert worker().reconciler.turn() == 0
    assert Evidence.objects.order_by("-id")[0].outcome == "no_answer"
    assert slot().inquiring_until is None
