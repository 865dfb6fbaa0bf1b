"""The walk through the job table: whole, in order, and in bounded windows."""

import re
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from console import bounded, walk
from jobs import searching
from jobs.models import Job
from jobs.status import JobStatus
from tests import build
from tests.console import people

pytestmark = pytest.mark.django_db


def walked(matching=None, scope=None):
    """Return the ids of all pages, walking to the end."""
    matching = Job.objects.all() if matching is None else matching
    scope = Job.objects.all() if scope is None else scope
    found, before = [], None
    for _ in range(100):
        stretch = walk.older(matching, scope, before=before, size=3)
        found.append([job.id for job in stretch.jobs])
        before = stretch.older
        if before is None:
            return found
    raise AssertionError("the walk does not end")


def test_every_job_is_seen_once_newest_first():
    ids = people.jobs(8)
    assert [i for page in walked() for i in page] == ids[::-1]


def test_walk_ends_without_an_empty_page_where_the_last_is_full():
    people.jobs(6)
    assert [len(page) for page in walked()] == [3, 3]


def test_jobs_enqueued_while_walking_move_no_page():
    ids = people.jobs(6)
    first = walk.older(Job.objects.all(), Job.objects.all(), before=None, size=3)
    people.jobs(4)
    second = walk.older(Job.objects.all(), Job.objects.all(), before=first.older, size=3)
    assert [j.id for j in (*first.jobs, *second.jobs)] == ids[::-1]


def test_walk_back_gives_the_page_before():
    ids = people.jobs(9)[::-1]
    third = walk.older(Job.objects.all(), Job.objects.all(), before=ids[5], size=3)
    assert [j.id for j in third.jobs] == ids[6:]
    assert third.newer
    second = walk.newer(Job.objects.all(), Job.objects.all(), after=third.newer, size=3)
    assert second
    assert [j.id for j in second.jobs] == ids[3:6]
    assert second.newer
    assert walk.newer(Job.objects.all(), Job.objects.all(), after=second.newer, size=3) is None


def test_one_request_looks_at_one_window_and_says_where_it_stopped(monkeypatch):
    monkeypatch.setattr(walk, "WINDOW", 4)
    ids = people.jobs(9)
    oldest = Job.objects.filter(id__in=ids[:2])
    stretch = walk.older(oldest, Job.objects.all(), before=None, size=3)
    assert (stretch.jobs, stretch.cut, stretch.older) == ([], True, ids[5])
    found = [i for page in walked(oldest) for i in page]
    assert found == [ids[1], ids[0]]


def test_window_is_counted_along_the_index_where_the_filter_has_one(monkeypatch, viewer):
    monkeypatch.setattr(walk, "WINDOW", 3)
    lease = build.job(JobStatus.FAILED)
    people.jobs(10)
    html = viewer.get(reverse("admin:jobs"), {"status": "failed"}).content.decode()
    assert str(build.id_of(lease)) in html
    held = build.enqueue(now=build.T0)
    people.jobs(10)
    Job.objects.hold(held, actor="a", reason="r", now=build.T0)
    assert str(held) in viewer.get(reverse("admin:jobs"), {"hold": "any"}).content.decode()


def walk_page(viewer, **query):
    """Return the ids on a page of the list, and the address of the next older one."""
    html = viewer.get(reverse("admin:jobs"), query).content.decode()
    ids = re.findall(r'name="job" value="([0-9a-f-]{36})"', html)
    older = re.search(r'href="(\?[^"]*before=[^"]*)"', html)
    return ids, older and older[1].replace("&amp;", "&")


@pytest.mark.parametrize("window", [2, 1000])
def test_list_by_tag_is_walked_along_its_rows_however_many_jobs_lie_between(monkeypatch, viewer, window):
    monkeypatch.setattr(walk, "WINDOW", window)
    monkeypatch.setattr(walk, "older", partial(walk.older, size=3))
    monkeypatch.setattr(walk, "newer", partial(walk.newer, size=3))
    tagged = []
    for n in range(8):
        tagged.append(str(build.enqueue(now=build.at(n), tags=["vip"], queue="ab"[n % 2])))
        people.jobs(3)
    first, older = walk_page(viewer, tag="vip")
    assert first == tagged[:4:-1]
    seen = [*first]
    while older:
        answer = viewer.get(reverse("admin:jobs") + older).content.decode()
        ids = re.findall(r'name="job" value="([0-9a-f-]{36})"', answer)
        seen += ids
        match = re.search(r'href="(\?[^"]*before=[^"]*)"', answer)
        older = match and match[1].replace("&amp;", "&")
    assert seen == tagged[::-1]
    back, _ = walk_page(viewer, tag="vip", after=tagged[3])
    assert set(back) <= set(tagged[4:])
    assert back
    few, more = walk_page(viewer, tag="vip", queue="a", top=tagged[7])
    assert few == tagged[6::-2][: 1 if window == 2 else 3]
    assert more


def test_rare_status_is_walked_rather_than_a_common_tag(monkeypatch, viewer):
    monkeypatch.setattr(walk, "WINDOW", 3)
    monkeypatch.setattr(searching, "RARE", 3)
    failed = build.job(JobStatus.FAILED, tags=["vip"])
    people.jobs(9, tags=["vip"])
    ids, older = walk_page(viewer, tag="vip", status="failed")
    assert (ids, older) == ([str(build.id_of(failed))], None)


def test_few_pending_jobs_are_found_however_old(monkeypatch, viewer):
    monkeypatch.setattr(walk, "WINDOW", 3)
    pending = build.enqueue(now=build.T0)
    later = build.enqueue(now=build.T0, delay=60)
    for _ in range(5):
        build.job(JobStatus.SUCCEEDED)
    html = viewer.get(reverse("admin:jobs"), {"status": "pending"}).content.decode()
    assert str(pending) in html
    assert str(later) in html


def test_counts_say_how_many_jobs_of_each_status():
    for status in JobStatus:
        build.job(status)
    build.enqueue(now=build.T0, delay=60)
    build.hold(build.job(JobStatus.PENDING))
    counts = {status: str(number) for status, number in walk.counts()}
    assert counts == {s.value: "3" if s == JobStatus.PENDING else "1" for s in JobStatus}


def test_counts_stop_at_the_limit():
    people.jobs(3)
    assert str(bounded.count(Job.objects.all(), limit=2)) == "2+"
    assert str(bounded.count(Job.objects.all(), limit=3)) == "3"


def test_counts_say_at_least_where_there_is_more_to_read(monkeypatch):
    monkeypatch.setattr(walk, "HELD", 2)
    monkeypatch.setattr(walk, "NEWEST", 4)
    for _ in range(3):
        build.job(JobStatus.SUCCEEDED)
    people.jobs(3)
    counts = {status: str(number) for status, number in walk.counts()}
    assert (counts["pending"], counts["waiting"], counts["succeeded"]) == ("3", "0+", "1+")
    for _ in range(2):
        build.enqueue(now=build.T0, delay=60)
    counts = {status: str(number) for status, number in walk.counts()}
    assert (counts["pending"], counts["waiting"]) == ("5+", "0+")


def test_no_page_counts_a_whole_table(viewer, job):
    """S72: every COUNT reads a bounded number of rows, or a set that an index keeps small."""
    for name in (
        "admin:index",
        "admin:jobs",
        "admin:queues",
        "admin:jobs_attempt_changelist",
        "admin:refusals",
    ):
        with CaptureQueriesContext(connection) as queries:
            viewer.get(reverse(name))
        for query in queries.captured_queries:
            sql = query["sql"]
            if "COUNT(" in sql and "jobs_minute" not in sql:
                assert "LIMIT" in sql or " IN (" in sql, sql


def test_neither_list_nor_counts_read_the_input(viewer, job):
    with CaptureQueriesContext(connection) as queries:
        viewer.get(reverse("admin:jobs"))
    assert not any('"jobs_job"."input"' in query["sql"] for query in queries.captured_queries)
