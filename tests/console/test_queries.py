"""What a page costs: a fixed number of queries, whatever there is to show."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobs.explain import explain_many
from jobs.models import Job
from jobs.operations import cases, casework
from jobs.status import JobStatus
from tests import build
from tests.console import matters, people

pytestmark = pytest.mark.django_db


def cost(client, url, **headers):
    client.get(url)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url, headers=headers).status_code == 200
    return len(queries)


def of_every_status(times):
    for _ in range(times):
        for status in JobStatus:
            build.job(status)


LISTS = {
    "index": 21,
    "jobs": 15,
    "inbox": 13,
    "queues": 17,
    "workers": 10,
    "refusals": 15,
    "scheduler": 14,
    "plans": 10,
    "drain": 21,
    "audit": 11,
    "drills": 12,
    "handover": 19,
    "search": 17,
}
"""So many queries a page asks, on the database that takes more. One more is a decision, not an accident."""


def test_page_costs_the_same_with_few_rows_and_with_many(viewer, job):
    def costs():
        urls = {name: reverse(f"admin:{name}") + ("?q=0123" if name == "search" else "") for name in LISTS}
        return {name: cost(viewer, url) for name, url in urls.items()}

    of_every_status(1)
    few = costs()
    of_every_status(4)
    assert costs() == few
    assert {name: n for name, n in few.items() if n > LISTS[name]} == {}


def test_case_costs_the_same_with_little_said_and_with_much(viewer, monkeypatch):
    monkeypatch.setattr(cases, "WORDS", 3)
    case = matters.open_case()
    urls = [reverse("admin:case", args=[case.pk]), reverse("admin:casefile", args=[case.pk])]
    matters.open_case(label="one like it")
    few = [cost(viewer, url) for url in urls]
    writer = viewer.get(urls[0]).wsgi_request.user
    writer.user_permissions.add(Permission.objects.get(codename="rule_effect"))
    for n in range(5):
        matters.evidence(case)
        casework.comment(case.pk, f"word {n}", actor=writer)
        matters.open_case(label=f"another like it {n}")
    assert [cost(viewer, url) for url in urls] == few
    assert max(few) <= 40
    html = viewer.get(urls[0]).content.decode()
    assert "word 4" in html
    assert "word 1" not in html


def test_jobs_page_costs_the_same_with_few_attempts_and_with_many(viewer):
    def tried(times):
        job_id = build.enqueue(now=build.T0, max_attempts=20)
        for n in range(times):
            lease = build.claim(job_id, now=build.at(2 * n))
            Job.objects.fail(
                lease, "RUNTIME_HANDLER_EXCEPTION", "no", retry_after=0.5, now=build.at(2 * n + 1)
            )
        return cost(viewer, reverse("admin:job", args=[job_id]))

    assert tried(1) == tried(9)


def test_page_of_an_operation_costs_the_same_with_few_rows_and_with_many(browse, job):
    urls = [
        reverse("admin:epoch-raise"),
        reverse("admin:queue-pause") + "?queue=mail",
        reverse("admin:job-force-cancel", args=[build.id_of(build.running())]),
    ]
    operator = browse("admin")
    few = [cost(operator, url) for url in urls]
    of_every_status(4)
    assert [cost(operator, url) for url in urls] == few
    assert max(few) <= 20


def test_list_by_tag_costs_two_queries_more_whatever_there_is_to_find(viewer):
    build.enqueue(tags=["vip"])
    plain = cost(viewer, reverse("admin:jobs") + "?kind=tests.kind")
    by_tag, with_more = (
        cost(viewer, reverse("admin:jobs") + query) for query in ("?tag=vip", "?tag=vip&status=pending")
    )
    assert by_tag <= plain
    assert with_more <= plain + 4
    people.jobs(9, tags=["vip"])
    assert cost(viewer, reverse("admin:jobs") + "?tag=vip") == by_tag


@pytest.mark.parametrize(
    ("region", "most"),
    [("index needs", 14), ("index proof", 13), ("index flow", 7), ("jobs table", 12), ("jobs counts", 16)],
)
def test_refresh_of_a_region_costs_that_region_only(viewer, job, region, most):
    name, target = region.split()
    url = reverse(f"admin:{name}")
    whole = cost(viewer, url)
    part = cost(viewer, url, **{"HX-Request": "true", "HX-Target": target})
    assert part <= most
    assert part < whole


def test_reasons_of_a_page_of_jobs_cost_five_queries():
    of_every_status(3)
    jobs = list(Job.objects.all())
    assert len(jobs) == 27
    with CaptureQueriesContext(connection) as queries:
        reasons = explain_many(jobs)
    assert len(queries) <= 5
    assert len(reasons) == 27


def test_reasons_of_many_are_the_reasons_of_each():
    from jobs.explain import Surroundings, explain

    of_every_status(1)
    people.jobs(2, queue="mail")
    Job.objects.pause_queue("mail", actor="a", reason="r", now=build.T0)
    jobs = list(Job.objects.all())
    now = build.at(30)
    together = explain_many(jobs, around=Surroundings(now=now))
    assert together == [explain(job, now=now) for job in jobs]
    assert len({reason.code for reason in together}) >= 8
