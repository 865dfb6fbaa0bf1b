"""`manage.py epoch`: the price first, then the raise; who holds it up; claims open and closed."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest
from django.core.management import CommandError
from django.db import connection, connections, transaction

from jobs.ledger import session, timeline
from jobs.models import AuditEntry, Job, Scheduler
from jobs.operations.cluster import HIGHEST_FLOOR
from jobs.outcomes import Refused
from tests import build
from tests.commands.conftest import manage

pytestmark = pytest.mark.django_db
BY = ("--as", "grace", "--reason", "drill")


def raising(*more: object):
    return manage("epoch", "raise", *BY, "--expected", 1, *more)


def test_raise_refuses_older_claims_and_is_audited(chief):
    lease = build.running()
    answer = raising("--yes", "--json")
    assert (answer.code, answer.document["epoch"], answer.document["was"]) == (0, 2, 1)
    assert Job.objects.commit(lease, 1, now=build.at(1)).reason == "EPOCH"
    entry = AuditEntry.objects.get(action="raise_epoch")
    assert (entry.user, entry.reason, entry.source) == ("grace", "drill", "command")
    row = Scheduler.objects.get()
    assert (row.changed_by.split(" (")[0], row.reason, row.claims_open) == ("grace", "drill", True)


def test_price_is_told_before_anything_is_changed(chief, typed):
    first, second = build.running(), build.running()
    other = build.claim(build.enqueue(), worker=build.RIVAL)
    build.effect(first, status="executing", amount=Decimal("42.50"), currency="EUR")
    build.effect(second, status="executing", amount=Decimal("7.50"), currency="EUR")
    build.effect(other, status="executing", amount=Decimal(100), currency="JPY")
    build.effect(other, status="unknown", slot="known", amount=Decimal(5), currency="JPY")
    answer = raising("--json")
    assert (answer.code, answer.document["raised"]) == (1, False)
    assert answer.document["price"] == {
        "attempts_lost": 3,
        "workers_fenced": 2,
        "workers": [{"id": build.WORKER, "leases": 2}, {"id": build.RIVAL, "leases": 1}],
        "effects_unknown": 3,
        "amounts": [
            {"currency": "EUR", "effects": 2, "amount": "50"},
            {"currency": "JPY", "effects": 1, "amount": "100"},
        ],
    }
    typed("yes")
    answer = raising()
    assert answer.code == 1
    for told in (
        "3 attempts are lost",
        "2 workers",
        "2, together 50 EUR",
        "queue pause",
        f"fence {build.WORKER}",
    ):
        assert told in answer.out
    assert build.epoch() == 1
    assert not AuditEntry.objects.exists()


def test_raise_goes_on_when_the_words_are_typed(chief, typed):
    typed("raise 1")
    answer = raising("--close-claims", "--floor", 40)
    assert (answer.code, build.epoch(), Scheduler.objects.get().claims_open) == (0, 41, False)


@pytest.mark.parametrize("option", ["--floor", "--expected"])
def test_epoch_that_the_audit_chain_cannot_hold_is_refused_with_the_limit(chief, option):
    with pytest.raises(CommandError, match=str(HIGHEST_FLOOR)):
        raising("--yes", option, HIGHEST_FLOOR + 1)
    assert build.epoch() == 1


def test_highest_floor_is_taken(chief):
    assert (raising("--yes", "--floor", HIGHEST_FLOOR).code, build.epoch()) == (0, HIGHEST_FLOOR + 1)


def test_raise_is_refused_where_somebody_was_first(chief):
    build.raise_epoch()
    answer = raising("--yes", "--json")
    assert (answer.code, answer.document["error"]["code"]) == (1, "EPOCH_MOVED")
    assert build.epoch() == 2


@pytest.mark.parametrize("verb", ["raise", "close-claims", "open-claims"])
def test_nobody_touches_the_scheduler_without_the_permission(verb, person):
    person("grace", "pause_queue", "fence_worker", "hold_job")
    more = ("--expected", 1, "--yes") if verb == "raise" else ()
    answer = manage("epoch", verb, *BY, *more, "--json")
    assert (answer.code, answer.document["error"]["code"]) == (1, "NOT_PERMITTED")
    assert (build.epoch(), Scheduler.objects.get().claims_open) == (1, True)


def test_claims_are_closed_and_opened_once(chief):
    assert manage("epoch", "close-claims", *BY, "--json").document == {"claims_open": False, "changed": True}
    assert manage("epoch", "close-claims", *BY, "--json").document["changed"] is False
    shown = manage("epoch", "show", "--json").document
    assert (shown["epoch"], shown["claims_open"], shown["reason"]) == (1, False, "drill")
    assert "claims closed" in manage("epoch", "show").out
    assert manage("epoch", "open-claims", *BY).code == 0
    assert Scheduler.objects.get().claims_open


def test_reason_of_blanks_and_numbers_that_are_none_are_bad_usage(chief):
    assert manage("epoch", "raise", "--as", "grace", "--reason", " ", "--expected", 1, "--yes").code == 2
    with pytest.raises(CommandError, match="whole number"):
        manage("epoch", "raise", *BY, "--expected", "-1", "--yes")
    assert build.epoch() == 1


@pytest.mark.django_db(transaction=True)
def test_raise_that_is_held_up_names_the_transaction_and_changes_nothing(chief, monkeypatch):
    if not connection.features.has_select_for_update:
        pytest.skip("this database locks the whole file, and does not tell for whom")
    monkeypatch.setattr(session, "OPEN_EXCLUSIVE", session.OPEN_EXCLUSIVE.replace("'2s'", "'200ms'"))
    held, done = threading.Event(), threading.Event()
    pids: list[int] = []

    def hold() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(session.HOLD_SCHEDULER)
            cursor.execute("SELECT pg_backend_pid()")
            pids.append(cursor.fetchone()[0])
            held.set()
            done.wait(30)
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(30)
        answer = raising("--yes", "--json")
    finally:
        done.set()
        holder.join()
    error = answer.document["error"]
    assert (answer.code, error["code"], error["params"]["pids"]) == (3, "SCHEDULER_HELD", pids)
    assert f"process {pids[0]}" in error["text"]
    assert build.epoch() == 1
    assert str(Refused("SCHEDULER_HELD", who="x")).endswith("x.")


def test_another_database_is_told_of_before_it_is_raised(chief):
    if timeline.read("default") == "":
        pytest.skip("this database does not tell which of its lives this is")
    assert manage("epoch", "show", "--json").document["timeline_moved"] is False
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_scheduler SET timeline = '1/1/00000001'")
    timeline.forget("default")
    assert "with a floor" in manage("epoch", "show").out
    answer = manage("epoch", "open-claims", *BY, "--json")
    assert (answer.code, answer.document["error"]["code"]) == (1, "TIMELINE_MOVED")
    assert "--floor" in raising("--yes").errors
    assert manage("epoch", "raise", *BY, "--expected", 2, "--floor", 8, "--yes").code == 0
    assert "with a floor" not in manage("epoch", "show").out


@pytest.fixture
def takes_two(settings):
    settings.INTERLOCK = {**settings.INTERLOCK, "RAISE_SECOND_PERSON": 1}


def test_raise_by_two_is_asked_for_and_confirmed_by_another(chief, person, typed, takes_two):
    person("hal", "approve_ruling")
    asked = raising("--yes", "--json", "--close-claims").document
    assert (asked["raised"], asked["asked"]["by"], build.epoch()) == (False, "grace", 1)
    key = asked["asked"]["id"]
    assert f"proposal {key}" in manage("epoch", "show").out
    own = manage("epoch", "confirm", key, *BY, "--yes", "--json")
    assert (own.code, own.document["error"]["code"]) == (1, "SELF_APPROVAL")
    other = ("--as", "hal", "--reason", "seen too")
    typed("raise 7")
    assert manage("epoch", "confirm", key, *other).code == 1
    assert manage("epoch", "confirm", key, *other, "--json").document["error"]["code"] == "NOT_CONFIRMED"
    assert build.epoch() == 1
    typed("raise 1")
    done = manage("epoch", "confirm", key[:13], *other)
    assert (done.code, build.epoch(), Scheduler.objects.get().claims_open) == (0, 2, False)
    assert "The epoch is 2" in done.out
    assert "grace asks to raise" in done.out


def test_raise_by_two_is_declined_and_an_unknown_one_named(chief, takes_two):
    key = raising("--yes", "--json").document["asked"]["id"]
    assert manage("epoch", "decline", key, *BY).code == 0
    assert "proposal" not in manage("epoch", "show").out
    absent = manage("epoch", "confirm", "0197aaaa", *BY, "--yes", "--json")
    assert (absent.code, absent.document["error"]["code"]) == (3, "RAISE_UNKNOWN")
    assert "0197aaaa" in absent.document["error"]["text"]
