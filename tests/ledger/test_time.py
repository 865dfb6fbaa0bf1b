"""Instants compare in SQL as they do in Python, to the microsecond.

SQLite keeps times as text; a text without a fraction beside one with six digits, a `T` beside a space or a
second form anywhere would turn the order round. Every comparison of the ledger rests on this.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from jobs.ledger.session import Session
from jobs.models import Job
from tests import build
from tests.build import T0, TICK, at

pytestmark = pytest.mark.django_db

FRACTIONS = (0, 1, 10, 500_000, 735_000, 999_999)
COMPARE = "SELECT r.due_at < r.deadline_at, r.due_at = r.deadline_at FROM {rows:jobs}"
ADD = "WITH t AS (SELECT {clock} AS now) SELECT {micros:{plus:t.now+%(n)s}} FROM t"
FIND = "WITH t AS (SELECT {clock} AS now) SELECT 1 FROM {table}, t WHERE {next_attempt_at} = t.now"
READ = "WITH t AS (SELECT {clock} AS now) SELECT {micros:t.now} FROM t"


def _instants(dice: random.Random) -> tuple[datetime, datetime]:
    """Return two instants that are equal, a tick apart, within a second or far apart, in any time zone."""
    zone = timezone(timedelta(minutes=dice.choice([0, 0, 330, -570, 60])))
    fraction = dice.choice([*FRACTIONS, dice.randrange(10**6)])
    first = T0 + timedelta(days=dice.uniform(-9_000, 9_000))
    first = first.replace(microsecond=fraction)
    apart = dice.choice([0, 1, dice.randrange(2 * 10**6), dice.randrange(10**15)])
    second = (first + dice.choice([1, -1]) * timedelta(microseconds=apart)).astimezone(zone)
    return first, second


def test_ten_thousand_pairs_compare_as_in_python():
    dice = random.Random(88)
    pairs = [_instants(dice) for _ in range(10_000)]
    rows = [{"due_at": first, "deadline_at": second} for first, second in pairs]
    answers = build.ledger(lambda s: s.run(COMPARE, {"jobs": rows}))
    wrong = [
        pair
        for pair, (less, equal) in zip(pairs, answers, strict=True)
        if (bool(less), bool(equal)) != (pair[0] < pair[1], pair[0] == pair[1])
    ]
    assert wrong == []


def test_whole_seconds_are_added_exactly_whatever_the_fraction():
    dice = random.Random(89)
    for _ in range(500):
        start, _ = _instants(dice)
        seconds = dice.choice([1, -1, 60, 86_400, dice.randrange(10**8)])

        def add(session: Session, seconds: int = seconds) -> Any:
            return session.moment(session.run(ADD, n=seconds)[0][0])

        assert build.ledger(add, now=start) == start + timedelta(seconds=seconds)


def test_given_instant_comes_back_as_it_was():
    dice = random.Random(90)
    for _ in range(200):
        moment, _ = _instants(dice)
        assert build.ledger(lambda s: s.moment(s.run(READ)[0][0]), now=moment) == moment


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_lease_that_ends_on_any_fraction_of_a_second_has_one_owner_at_every_instant(fraction):
    start = T0.replace(microsecond=fraction)
    lease = build.running(now=start)
    end = start + timedelta(seconds=60)
    assert lease.lease_expires_at == build.row(lease)["lease_expires_at"] == end
    for moment, holder in ((end - TICK, True), (end, False), (end + TICK, False)):
        with build.undone():
            assert Job.objects.renew(lease, now=moment).landed is holder
        with build.undone():
            taken = Job.objects.claim_job(build.id_of(lease), worker_id=build.RIVAL, now=moment)
            assert (taken is None) is holder


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_delay_is_due_on_any_fraction_of_a_second_and_not_a_tick_before(fraction):
    due = at(10).replace(microsecond=fraction)
    build.enqueue(due_at=due)
    claim: Any = {"worker_id": "w", "queues": [build.QUEUE], "kinds": [build.KIND]}
    assert Job.objects.claim(**claim, now=due - TICK) == []
    assert len(Job.objects.claim(**claim, now=due)) == 1


def test_orm_and_ledger_write_one_form():
    """A row that raw SQL wrote is found by the ORM at exactly its instant, and the other way round."""
    for fraction in FRACTIONS:
        moment = at(0).replace(microsecond=fraction)
        job_id = build.enqueue(now=moment)
        assert Job.objects.get(pk=job_id, created_at=moment).created_at == moment
        assert Job.objects.filter(pk=job_id, created_at__lt=moment + TICK, created_at__gt=moment - TICK)
        build.edit(job_id, next_attempt_at=moment, ready_at=None)
        assert build.ledger(lambda s: s.run(FIND), now=moment)


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/New_York"])
def test_times_do_not_depend_on_the_products_time_zone(settings, zone):
    settings.TIME_ZONE = zone
    lease = build.running(now=T0)
    assert build.row(lease)["lease_expires_at"] == at(60)
    assert Job.objects.recover(now=at(60) - TICK) == []
    assert len(Job.objects.recover(now=at(60))) == 1


def test_clock_of_a_verb_without_a_given_instant_is_now():
    before = datetime.now(UTC)
    job_id = Job.objects.enqueue(build.KIND, {}).job_id
    assert before - timedelta(seconds=5) < Job.objects.get(pk=job_id).created_at
    assert Job.objects.get(pk=job_id).created_at < datetime.now(UTC) + timedelta(seconds=5)
