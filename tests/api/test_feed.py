"""GET /events: everything once, in an order in which nothing is slipped in behind a reader."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from jobs.ledger import worker as worker_rows
from jobs.models import Change, Job, Scheduler
from tests import build
from tests.api.caller import Api, secret
from tests.build import at


def read(api, after=None, **more):
    """Follow the feed to its end; returns (verb, ids) of every change, and the last cursor."""
    told, cursor = [], after
    while True:
        query = "&".join(f"{k}={v}" for k, v in ({"after": cursor} | more).items() if v is not None)
        answer = api.look(f"/events?{query}")
        assert answer.status_code == 200, answer.content
        page = answer.json()
        told += [(change["verb"], [job["id"] for job in change["jobs"]]) for change in page["results"]]
        cursor = page["next"]
        if not page["more"]:
            return told, cursor


def cluster_acts(count, start=0):
    for number in range(start, start + count):
        Job.objects.pause_queue(f"q{number}", actor="someone", reason="r", now=at(number))


def test_feed_is_told_once_from_the_beginning_and_goes_on_where_it_was_left(transactional_db):
    api = Api(secret("jobs:read"))
    lease = build.running()
    Job.objects.hold(build.id_of(lease), actor="ada", reason="why not", now=at(1))
    told, cursor = read(api, limit=1)
    assert told == [("claim", [str(build.id_of(lease))]), ("hold", [str(build.id_of(lease))])]
    assert read(api, cursor) == ([], cursor)
    cluster_acts(3)
    told, later = read(api, cursor, limit=2)
    assert [verb for verb, _ in told] == ["pause_queue"] * 3
    assert read(api, "latest")[1] == later


def test_every_change_has_a_cursor_of_its_own(transactional_db):
    api = Api(secret("jobs:read"))
    cluster_acts(3)
    changes = api.look("/events").json()["results"]
    assert [len(read(api, change["cursor"])[0]) for change in changes] == [2, 1, 0]
    assert (changes[0]["actor"], changes[0]["reason"], changes[0]["jobs"]) == ("someone", "q0: r", [])


def test_token_limited_to_queues_hears_of_its_own_jobs_only(transactional_db):
    mine = build.enqueue(queue="mail")
    other = build.enqueue(queue="default")
    for number, job_id in enumerate((mine, other)):
        Job.objects.hold(job_id, actor="ada", reason="r", now=at(number))
    cluster_acts(1)
    told, _cursor = read(Api(secret("jobs:read", queues=("mail",))), limit=1)
    assert told == [("hold", [str(mine)])]


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "latest ", "é", "A" * 32, "A" * 5000, "-1", "0"])
def test_cursor_that_is_none_is_refused(db, cursor):
    answer = Api(secret("jobs:read")).look("/events", data={"after": cursor})
    assert (answer.status_code, answer.json()["code"]) in [(400, "invalid-query"), (410, "cursor-gone")]


def test_cursor_of_another_life_of_the_database_is_gone(transactional_db):
    api = Api(secret("jobs:read"))
    cluster_acts(1)
    cursor = read(api)[1]
    with connection.cursor() as sql:
        sql.execute("UPDATE jobs_scheduler SET timeline = 'elsewhere'")
    try:
        answer = api.look(f"/events?after={cursor}")
        assert (answer.status_code, answer.json()["code"], answer.json()["retryable"]) == (
            410,
            "cursor-gone",
            False,
        )
    finally:
        with connection.cursor() as sql:
            sql.execute("UPDATE jobs_scheduler SET timeline = ''")
    assert Scheduler.objects.get().timeline == ""


def write(job_id):
    """Write a change as a worker's verbs do, which take no lock that another writer would wait for."""
    build.ledger(lambda session: worker_rows.add_change(session, "claim", [[job_id.hex, "running"]]))


def in_thread(work):
    """Run work with a connection of its own."""
    failed = []

    def run():
        try:
            work()
        except Exception as error:  # noqa: BLE001  (told by the test)
            failed.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, failed


def test_change_that_commits_late_is_not_skipped(transactional_db):
    """One writer takes a number and keeps its transaction open, a second one commits, a reader reads."""
    if not connection.features.has_select_for_update:
        pytest.skip("one writer at a time: a number is never handed out before the one below is committed")
    api = Api(secret("jobs:read"))
    first, second = build.enqueue(), build.enqueue()
    written, go_on = threading.Event(), threading.Event()

    def slow():
        with transaction.atomic():
            write(first)
            written.set()
            assert go_on.wait(30)

    thread, failed = in_thread(slow)
    assert written.wait(30)
    write(second)
    assert Change.objects.get().jobs[0][0] == second.hex, "the later number is there, the earlier one is not"
    told, cursor = read(api)
    go_on.set()
    thread.join()
    assert not failed
    rest, _end = read(api, cursor)
    assert sorted(ids[0] for _verb, ids in told + rest) == sorted([str(first), str(second)])


def test_many_writers_and_a_reader_lose_nothing_and_tell_nothing_twice(transactional_db):
    api = Api(secret("jobs:read"))
    jobs = [build.enqueue() for _ in range(24)]
    done = threading.Event()
    told = []

    def writer(part):
        def work():
            for job_id in part:
                write(job_id)

        return work

    def follow():
        cursor = None
        while not done.is_set():
            found, cursor = read(api, cursor, limit=3)
            told.extend(found)
        told.extend(read(api, cursor)[0])

    reader, lost = in_thread(follow)
    writers = [in_thread(writer(jobs[number::3])) for number in range(3)]
    for thread, failed in writers:
        thread.join()
        assert not failed
    done.set()
    reader.join()
    assert not lost
    assert sorted(ids[0] for _verb, ids in told) == sorted(str(job_id) for job_id in jobs)
