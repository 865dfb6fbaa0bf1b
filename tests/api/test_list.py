"""GET /jobs: filters that are never ignored, and pages that show each job exactly once."""

import uuid
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jobs import handlers
from jobs.api import paging
from jobs.ledger.clock import clock
from jobs.models import Job
from jobs.status import JobStatus
from tests import build
from tests.api.caller import ROOT
from tests.build import KIND, at, enqueue


def ids(answer):
    assert answer.status_code == 200, answer.content
    return [job["id"] for job in answer.json()["results"]]


def refusal(answer):
    assert answer.status_code == 400, answer.content
    assert answer.json()["code"] == "invalid-query"
    return [error["parameter"] for error in answer.json()["errors"]]


def walk(api, address, between=lambda: None):
    """Follow `next` to the end; returns the ids of every page, one after the other."""
    pages = []
    while address:
        answer = api.get(address)
        pages.append(ids(answer))
        assert len(pages) < 100, "the pages go round in circles"
        address = answer.json()["next"]
        between()
    return pages


@pytest.mark.parametrize("status", JobStatus)
def test_job_of_every_status_is_listed_and_found_by_it(api, status):
    job_id = str(build.id_of(build.job(status)))
    assert ids(api.look("/jobs")) == [job_id]
    assert ids(api.look(f"/jobs?status={status}")) == [job_id]
    others = "&".join(f"status={other}" for other in JobStatus if other != status)
    assert ids(api.look(f"/jobs?{others}")) == []


def test_each_filter_narrows(api):
    parent = enqueue(queue="a", priority=5, unique_key="k é&+", enqueued_by="me", now=at(0))
    child = enqueue(queue="b", parent_id=parent, now=at(60))
    lease = build.running(queue="c", now=at(120))
    build.end(lease, JobStatus.FAILED, now=at(179))
    failed = build.id_of(lease)
    everyone = {parent, child, failed}
    for query, expected in [
        ("", everyone),
        (f"id={parent}&id={str(child).upper()}", {parent, child}),
        (f"id={parent.hex}", {parent}),
        (f"kind={KIND}", everyone),
        ("kind=tests.other", set()),
        ("queue=a&queue=c", {parent, failed}),
        ("unique_key=k%20%C3%A9%26%2B", {parent}),
        ("unique_key=k", set()),
        ("enqueued_by=me", {parent}),
        (f"parent_id={parent}", {child}),
        ("priority=5", {parent}),
        ("priority=-5", set()),
        ("attempts_min=1", {failed}),
        ("error_code=HANDLER_CONTENT_FAILED", {failed}),
        ("created_since=2026-03-01T12:01:00Z", {child, failed}),
        ("created_since=2026-03-01T13:01:00+01:00", {child, failed}),
        ("created_since=2026-03-01T13:01:00%2B01:00&created_before=2026-03-01T12:02:00.000000Z", {child}),
        ("finished_since=2026-03-01T12:02:59Z", {failed}),
        ("finished_before=2026-03-01T12:02:59Z", set()),
        ("status=failed&queue=a", set()),
        ("worker=host", set()),
        ("key=k%20%C3%A9%26%2B", {parent}),
        ("q=k%20%C3%A9%26%2B", {parent}),
        ("label=nothing", set()),
        ("age=%3E1h", everyone),
        ("age=1h", set()),
        ("hold=any", set()),
        (f"parent={parent}", {child}),
        ("hold_reason=operator", set()),
        ("wait_reason=approval", set()),
        (f"worker_id={build.WORKER}", set()),
    ]:
        assert set(ids(api.look(f"/jobs?{query}"))) == {str(i) for i in expected}, query


def test_each_of_the_consoles_words_finds_what_the_console_finds(api):
    old = enqueue(label="Offer 17", unique_key="k1", now=at(0))
    keyed = enqueue(label="Invoice", concurrency_key="acme", parent_id=old, now=clock())
    held = enqueue(label="offer 18", now=clock())
    Job.objects.hold(held, actor="ada", reason="r")
    mine = build.id_of(build.running())
    everyone = {old, keyed, held, mine}
    host = build.WORKER.partition(":")[0]
    for query, expected in [
        (f"worker={build.WORKER}", {mine}),
        (f"worker={host}", {mine}),
        (f"worker={host[:-1]}", set()),
        ("key=k1", {old}),
        ("key=acme", {keyed}),
        ("label=OFFER", {old, held}),
        ("age=%3E1h", {old, mine}),
        ("age=1h", {keyed, held}),
        ("age=%3C1h", {keyed, held}),
        ("hold=any", {held}),
        ("hold=operator", {held}),
        ("hold=quarantine", set()),
        (f"parent={old}", {keyed}),
        ("q=offer", {old, held}),
        ("q=acme", {keyed}),
        (f"q={str(held).upper()}", {held}),
        (f"q={held.hex[:28]}&hold=any&label=18", {held}),
        ("q=nothing", set()),
        ("limit=200", everyone),
    ]:
        assert set(ids(api.look(f"/jobs?{query}"))) == {str(i) for i in expected}, query


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("statee=failed", "statee"),
        ("format=json", "format"),
        ("page=2", "page"),
        ("%00=1", "\0"),
        ("status=FAILED", "status"),
        ("status=", "status"),
        ("status=failed&status=bogus", "status"),
        ("status=failed,running", "status"),
        ("kind=a%00b", "kind"),
        ("kind=%ff", "kind"),
        ("label=%ed%a0%80", "label"),
        ("label=a%ff", "label"),
        ("%ff=1", "\ufffd"),
        ("kind=<script>", "kind"),
        ("queue=a/b", "queue"),
        ("queue=" + "q" * 101, "queue"),
        ("unique_key=a%00b", "unique_key"),
        ("unique_key=a&unique_key=b", "unique_key"),
        ("unique_key=" + "k" * 201, "unique_key"),
        ("id=1", "id"),
        ("id=" + "&id=".join(str(uuid.UUID(int=n)) for n in range(51)), "id"),
        ("id={00000000-0000-0000-0000-000000000000}", "id"),
        ("parent_id=xxx", "parent_id"),
        ("parent_id=urn:uuid:00000000-0000-0000-0000-000000000000", "parent_id"),
        ("parent_id=" + "0" * 10_000, "parent_id"),
        ("priority=2147483648", "priority"),
        ("priority=9223372036854775808", "priority"),
        ("priority=" + "9" * 5000, "priority"),
        ("priority=1e3", "priority"),
        ("priority=%2B5", "priority"),
        ("priority= 5 ", "priority"),
        ("priority=5_0", "priority"),
        ("priority=１２", "priority"),
        ("attempts_min=-1", "attempts_min"),
        ("attempts_min=2147483648", "attempts_min"),
        ("created_since=0001-01-01T00:00:00Z", "created_since"),
        ("created_since=0001-01-01T00:00:00%2B14:00", "created_since"),
        ("created_before=9999-12-31T23:59:59-12:00", "created_before"),
        ("created_before=2026-02-30T00:00:00Z", "created_before"),
        ("created_before=2026-11-01T01:30:00", "created_before"),
        ("created_before=2026-11-01", "created_before"),
        ("created_before=now", "created_before"),
        ("created_before=1893456000", "created_before"),
        ("created_before=２０２６-11-01T01:30:00Z", "created_before"),
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=201", "limit"),
        ("limit=" + "9" * 400, "limit"),
        ("limit=１０", "limit"),
        ("limit=", "limit"),
        ("limit=5&limit=6", "limit"),
        ("ordering=-priority", "ordering"),
        ("ordering=%00", "ordering"),
        ("count=all", "count"),
        ("age=5", "age"),
        ("age=1h30m", "age"),
        ("age=-1h", "age"),
        ("age=99999d", "age"),
        ("age=１h", "age"),
        ("hold=maybe", "hold"),
        ("hold=any&hold=operator", "hold"),
        ("parent=urn:uuid:00000000-0000-0000-0000-000000000000", "parent"),
        ("worker=a%00", "worker"),
        ("key=" + "k" * 201, "key"),
        ("label=a%00", "label"),
        ("q=%00", "q"),
        ("cursor=", "cursor"),
        ("cursor=%00", "cursor"),
        ("cursor=garbage", "cursor"),
        ("cursor=" + "A" * 32, "cursor"),
        ("cursor=é" + "A" * 31, "cursor"),
        ("cursor=" + "_" * 33, "cursor"),
    ],
    ids=lambda value: str(value)[:50],
)
@pytest.mark.looks_alike
def test_parameter_that_is_unknown_or_wrong_is_named_and_nothing_is_shown(api, query, parameter):
    enqueue()
    assert refusal(api.look(f"/jobs?{query}")) == [parameter]


def test_every_wrong_parameter_is_named_at_once(api):
    assert sorted(refusal(api.look("/jobs?statee=x&kindd=y&status="))) == ["kindd", "statee", "status"]


def test_only_a_list_takes_parameters(api):
    job_id = enqueue()
    assert refusal(api.look(f"/jobs/{job_id}?fields=id")) == ["fields"]
    assert refusal(api.send({"kind": KIND}, "/jobs?dry_run=1")) == ["dry_run"]
    assert refusal(api.send({"reason": "r"}, f"/jobs/{job_id}/cancel?force=1")) == ["force"]
    assert Job.objects.count() == 1
    assert build.row(job_id)["status"] == "pending"


@pytest.mark.parametrize("ordering", ["-id", "id"])
def test_pages_are_in_order_and_complete(api, ordering):
    made = [str(enqueue()) for _ in range(7)]
    pages = walk(api, f"{ROOT}/jobs?limit=3&ordering={ordering}")
    assert [len(page) for page in pages] == [3, 3, 1]
    shown = [job for page in pages for job in page]
    assert shown == sorted(made, reverse=ordering == "-id")


def test_page_that_ends_with_the_list_has_no_next(api):
    for _ in range(4):
        enqueue()
    assert [len(page) for page in walk(api, f"{ROOT}/jobs?limit=2")] == [2, 2]


def test_replacement_character_is_a_character(api):
    job_id = enqueue(label="a\ufffd")
    assert ids(api.look("/jobs?label=%ef%bf%bd")) == [str(job_id)]


@pytest.mark.parametrize(
    "other", ["", "queue=b", "queue=a&queue=b", "queue=a&kind=tests.kind", "queue=a&ordering=id"]
)
def test_cursor_belongs_to_its_filters_and_its_ordering(api, other):
    for _ in range(3):
        enqueue(queue="a")
    cursor = parse_qs(urlsplit(api.look("/jobs?queue=a&limit=1").json()["next"]).query)["cursor"][0]
    assert refusal(api.look(f"/jobs?{other}&cursor={cursor}".replace("?&", "?"))) == ["cursor"]
    assert len(ids(api.look(f"/jobs?queue=a&cursor={cursor}&limit=2"))) == 2, "another limit is no other list"


@pytest.fixture
def searched():
    @handlers.job("tests.searched", search=["n", "customer.id"])
    def work(n, customer=None):
        """Do nothing."""

    return [
        Job.objects.enqueue(
            "tests.searched",
            {"n": n, "customer": {"id": f"C{n % 2}"}},
            options=build.options(tags=["vip"] if n % 3 == 0 else [], queue="ab"[n % 2]),
        ).job_id
        for n in range(9)
    ]


def test_tag_and_argument_find_exactly(api, searched):
    enqueue(tags=["other"])
    everyone = list(map(str, searched))
    for query, expected in (
        ("tag=vip", everyone[::3]),
        ("tag=v", []),
        ("arg=n=4", [everyone[4]]),
        ("arg=customer.id=C1", everyone[1::2]),
        ("tag=vip&arg=customer.id=C1", [everyone[3]]),
        ("tag=vip&queue=a", [everyone[0], everyone[6]]),
        ("tag=vip&status=failed", []),
        (f"tag=vip&id={everyone[3]}&id={everyone[4]}", [everyone[3]]),
        ("arg=n=no%3Dmore%20%26", []),
    ):
        assert ids(api.look(f"/jobs?{query}")) == expected[::-1], query
        assert ids(api.look(f"/jobs?{query}&ordering=id")) == expected, query
    assert api.look("/jobs?tag=vip&count=bounded").json()["count"] == {"value": 3, "exact": True}


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("tag=a%20b", "tag"),
        ("tag=" + "x" * 51, "tag"),
        ("tag=a&tag=b", "tag"),
        ("arg=n", "arg"),
        ("arg=%3D1", "arg"),
        ("arg=n%3D", "arg"),
        ("arg=other=1", "arg"),
        ("arg=n=" + "x" * 201, "arg"),
    ],
)
def test_bad_tag_or_argument_is_refused(api, searched, query, name):
    answer = api.look(f"/jobs?{query}")
    assert refusal(answer) == [name]
    if query == "arg=other=1":
        assert "customer.id, " in answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize("window", [1, 2, paging.WINDOW])
@pytest.mark.parametrize("ordering", ["-id", "id"])
def test_pages_by_tag_show_each_job_once_and_look_at_its_rows_only(
    api, searched, monkeypatch, window, ordering
):
    monkeypatch.setattr(paging, "WINDOW", window)
    for query, expected in (("tag=vip", searched[::3]), ("tag=vip&queue=b", [searched[3]])):
        pages = walk(api, f"{ROOT}/jobs?{query}&limit=1&ordering={ordering}")
        shown = [uuid.UUID(job) for page in pages for job in page]
        assert shown == sorted(expected, reverse=ordering == "-id")
        assert len(pages) <= 5
        if window > 2:
            assert len(pages) == len(expected), "a page holds what passes, not what was looked at"


STEPS = st.lists(st.sampled_from(["insert", "delete", "cancel", "retry"]), max_size=4)


@pytest.mark.parametrize("window", [3, paging.WINDOW])
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    # Making a failure smaller means walking lists for minutes.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    size=st.integers(0, 14),
    limit=st.integers(1, 5),
    ordering=st.sampled_from(["-id", "id"]),
    query=st.sampled_from(["", "&queue=a", "&status=pending&status=cancelled", "&status=cancelled"]),
    steps=st.lists(STEPS, max_size=6),
    data=st.data(),
)
def test_untouched_job_is_shown_exactly_once_whatever_happens_between_pages(
    api, window, size, limit, ordering, query, steps, data
):
    with build.undone(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(paging, "WINDOW", window)
        made = [enqueue(queue="ab"[n % 3 == 0]) for n in range(size)]
        for job_id in made[::4]:
            Job.objects.cancel(job_id, actor="me")
        touched = set()
        remaining = [list(step) for step in steps]

        def between():
            for step in remaining.pop(0) if remaining else []:
                if step == "insert":
                    enqueue(queue="a")
                elif made:
                    job_id = data.draw(st.sampled_from(made))
                    touched.add(job_id)
                    touch(job_id, step)

        address = f"{ROOT}/jobs?limit={limit}&ordering={ordering}{query}"
        expected = {job.id for job in paging_all(query)}
        shown = [uuid.UUID(job) for page in walk(api, address, between) for job in page]
        assert len(shown) == len(set(shown))
        assert expected - touched <= set(shown)
        assert shown == sorted(shown, reverse=ordering == "-id")


def paging_all(query):
    wanted = parse_qs(query.strip("&"))
    return Job.objects.filter(**{f"{name}__in": values for name, values in wanted.items()})


def touch(job_id, step):
    if step == "delete":
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM jobs_job WHERE id = %s", [Job._meta.pk.get_db_prep_value(job_id, connection)]
            )
        return
    found = Job.objects.filter(pk=job_id).first()
    if found is None:
        return
    if step == "cancel":
        Job.objects.cancel(job_id, actor="me")
    elif found.status == "cancelled":
        Job.objects.retry(job_id, state_version=found.state_version, actor="me", reason="r")


def test_count_is_given_on_request_only_and_stops_at_its_bound(api, monkeypatch):
    for _ in range(5):
        enqueue()
    assert "count" not in api.look("/jobs").json()
    assert api.look("/jobs?count=bounded&limit=1").json()["count"] == {"value": 5, "exact": True}
    monkeypatch.setattr(paging, "COUNTED", 3)
    assert api.look("/jobs?count=bounded").json()["count"] == {"value": 3, "exact": False}


def test_count_of_rare_jobs_looks_at_a_bounded_part_of_the_table(api, monkeypatch):
    monkeypatch.setattr(paging, "WINDOW", 1)
    enqueue(queue="rare")
    for _ in range(6):
        enqueue()
    assert api.look("/jobs?count=bounded&queue=rare").json()["count"] == {"value": 0, "exact": False}


def test_list_costs_two_statements_on_jobs_whatever_its_length(api):
    for _ in range(30):
        build.job(JobStatus.SUCCEEDED)
    api.look("/jobs")
    for query in ("", "?queue=default"):
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert len(ids(api.look(f"/jobs{query}"))) == 30
        on_jobs = [q["sql"] for q in captured if 'FROM "jobs_job"' in q["sql"]]
        assert len(on_jobs) <= 2
        assert not any("COUNT(" in sql for sql in on_jobs)


def test_page_of_the_most_rows_is_served(api):
    Job.objects.enqueue_many([(KIND, {}, None)] * 201)
    assert len(ids(api.look("/jobs?limit=200"))) == 200
