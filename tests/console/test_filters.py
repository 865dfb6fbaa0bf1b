"""Odd addresses: each gets a sentence that names the filter, never everything, never an error of ours."""

import urllib.parse
import uuid

import pytest
from django.urls import reverse

from jobs import handlers
from jobs.models import Job
from tests import build
from tests.console import people

pytestmark = pytest.mark.django_db

HUGE = [2**31, 2**63, 10**30, -1]
NOT_NUMBERS = ["1e3", "１２", "+5", "5_000", "NaN", "x"]
NOT_IDS = ["zz", "12", f"{{{uuid.uuid4()}}}", f"urn:uuid:{uuid.uuid4()}", "x" * 10_000, "½" * 8]
NOT_TAGS = ["a b", "a,b", "x" * 51, "a\u202eb"]
NOT_ARGUMENTS = ["invoice", "=17", "invoice=", "nothing=1", "invoice=" + "x" * 201, "x" * 400 + "=1", "="]
NOT_AGES = [
    "9999-12-31",
    "0001-01-01",
    "now",
    "24",
    "h",
    "-3h",
    "999999999d",
    "99999d",
    "1.5h",
    "１２h",
    ">",
    "3 weeks",
]


def listing(client, query, **headers):
    return client.get(reverse("admin:jobs") + "?" + query, headers=headers)


def table(client, query):
    """Return the list alone, as the page asks for it when it refreshes: a third of the whole page's work."""
    return listing(client, query, **{"HX-Request": "true", "HX-Target": "table"}).content.decode()


@pytest.mark.looks_alike
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("statee=failed", "statee"),
        ("status=FAILED", "status"),
        ("status=failed&status=bogus", "status"),
        ("status__in=failed", "status__in"),
        ("kind=a&kind=b", "kind"),
        ("hold=whatever", "hold"),
        ("kind=" + "k" * 201, "kind"),
        ("before=x", "before"),
        ("after=9223372036854775808", "after"),
        ("page=2", "page"),
        *[("tag=" + urllib.parse.quote(value), "tag") for value in NOT_TAGS],
        *[("arg=" + urllib.parse.quote(value), "arg") for value in NOT_ARGUMENTS],
        ("tag=a&tag=b", "tag"),
        *[("id=" + urllib.parse.quote(value), "id") for value in NOT_IDS],
        *[("age=" + urllib.parse.quote(value), "age") for value in NOT_AGES],
        *[(f"before={value}", "before") for value in HUGE],
        *[("parent=" + urllib.parse.quote(value), "parent") for value in [*NOT_NUMBERS, "x" * 10_000]],
    ],
)
def test_filter_that_cannot_be_applied_is_named_and_nothing_is_listed(viewer, query, name):
    people.jobs(2)
    for headers in ({}, {"HX-Request": "true", "HX-Target": "table"}):
        answer = listing(viewer, query, **headers)
        html = answer.content.decode()
        assert answer.status_code == 400
        assert f"<code>{name[:80]}</code>" in html
        assert build.KIND not in html.partition("</form>")[2]


def test_filter_left_empty_by_a_form_is_no_filter(viewer):
    people.jobs(2)
    answer = listing(viewer, "kind=&queue=&error_code=&age=&hold=&id=&label=&key=&worker=&parent=")
    assert answer.status_code == 200
    assert answer.content.decode().count(f">{build.KIND}</a>") == 2


@pytest.mark.parametrize(
    "query",
    [
        "kind=a%00b",
        "q=%00",
        "label=%00",
        "a%00b=1",
        "range=%00",
        "before=%00",
        "e=%00",
    ],
)
@pytest.mark.parametrize(
    "page", ["admin:index", "admin:jobs", "admin:refusals", "admin:jobs_worker_changelist"]
)
def test_nul_in_an_address_is_a_bad_request(viewer, page, query):
    assert viewer.get(reverse(page) + "?" + query).status_code == 400


@pytest.mark.parametrize(
    "path", ["/jobs/%00/", "/%00", "/jobs/worker/%00/change/", "/jobs/worker/a%00b/change/"]
)
def test_nul_in_a_path_is_a_bad_request(viewer, path):
    assert viewer.get(path).status_code == 400


@pytest.mark.parametrize(
    "path", ["xxxxxxx", "00000000-0000-0000-0000-000000000000", str(uuid.uuid4()).upper(), "9" * 40]
)
def test_job_that_is_not_there_is_not_found(viewer, path):
    answer = viewer.get(f"/jobs/{path}/")
    assert answer.status_code == 404
    assert "Traceback" not in answer.content.decode()


@pytest.mark.parametrize(
    "name", ["attempt", "worker", "minute", "change", "queue", "scheduler", "fencerefusal"]
)
@pytest.mark.parametrize("key", ["x", "9" * 30, str(2**63), "-1", "½", "_5F", "a" * 5000])
def test_row_that_is_not_there_leads_back_to_the_overview(viewer, name, key):
    answer = viewer.get(f"/jobs/{name}/{key}/change/")
    assert answer.status_code in (302, 404)


@pytest.mark.parametrize(
    "query",
    [
        "id__exact=1",
        "started_at__year=9999",
        "status__exact=x",
        "job__kind=x",
        "p=-1",
        "p=9" + "9" * 25,
        "o=1.2",
    ],
)
def test_window_looks_nothing_up_and_never_breaks(viewer, job, query):
    answer = viewer.get(reverse("admin:jobs_attempt_changelist") + "?" + query)
    assert answer.status_code in (200, 302, 400)


@pytest.mark.parametrize("value", [2**63, 10**30, 10**90, -1, *NOT_NUMBERS])
def test_place_in_the_refusals_is_a_number_that_fits(viewer, job, value):
    assert viewer.get(reverse("admin:refusals"), {"before": value}).status_code == 400
    assert viewer.get(reverse("admin:refusals"), {"before": 2**63 - 1}).status_code == 200


def test_every_filter_finds_what_it_says(viewer):
    wanted = build.running(label="Invoice 77", unique_key="key-77", queue="mail")
    build.hold(wanted)
    people.jobs(3)
    job_id = build.id_of(wanted)
    for query in (
        "status=running",
        "queue=mail",
        f"worker={build.WORKER}",
        "worker=host",
        "worker=host:1",
        "key=key-77",
        "label=invoice",
        "hold=any",
        "hold=operator",
        f"id={job_id}",
        f"id={job_id.hex[:28]}",
        "q=key-77",
        "q=voice%2077",
        f"q={job_id.hex[:28]}",
        "status=running&queue=mail&label=77",
    ):
        html = table(viewer, query)
        assert html.count('data-label="Attempt"') == 1, query
        assert str(job_id) in html, query
    for query in (
        "status=failed",
        "queue=other",
        "key=key",
        "hold=quarantine",
        "worker=hos",
        "error_code=X_FAILED",
    ):
        html = table(viewer, query)
        assert "No job matches" in html, query
        assert 'data-label="Attempt"' not in html, query


@pytest.fixture
def searched():
    """A kind whose invoices and customers are searched for, and its jobs, a tag on the first two."""

    @handlers.job("tests.searched", search=["invoice", "customer.id"], tags=["money"])
    def work(invoice, customer, amount=0):
        """Do nothing."""

    calls = [({"invoice": f"INV-{n}", "customer": {"id": n % 2}}, n < 2) for n in range(4)]
    return [
        Job.objects.enqueue("tests.searched", given, options=build.options(tags=["vip"] if tagged else []))
        for given, tagged in calls
    ]


def test_tag_and_argument_find_exactly(viewer, searched):
    people.jobs(2)
    ids = [str(answer.job_id) for answer in searched]
    for query, found in (
        ("tag=vip", ids[:2]),
        ("tag=money", ids),
        ("tag=vi", []),
        ("tag=VIP", []),
        ("arg=invoice=INV-1", [ids[1]]),
        ("arg=invoice=INV", []),
        ("arg=customer.id=1", [ids[1], ids[3]]),
        ("tag=vip&arg=customer.id=1", [ids[1]]),
        ("tag=vip&status=pending&kind=tests.searched", ids[:2]),
        ("tag=vip&status=failed", []),
        ("tag=vip&hold=any", []),
        (f"tag=vip&id={ids[0]}", [ids[0]]),
        ("tag=money&q=INV", []),
    ):
        html = table(viewer, query)
        assert {i for i in ids if i in html} == set(found), query
        assert html.count('data-label="Attempt"') == len(found), query


def test_path_that_nothing_declares_is_told_those_that_are_declared(viewer, searched):
    html = listing(viewer, "arg=amount=1").content.decode()
    assert "customer.id, " in html
    assert "invoice" in html
    handlers.forget("tests.searched")
    # Its rows are there, and a worker knows the kind.
    assert table(viewer, "arg=customer.id=1").count('data-label="Attempt"') == 2
    assert "No job matches" in table(viewer, "arg=customer.id=9")


def test_filters_in_use_are_shown_and_lead_on(viewer, searched):
    html = listing(viewer, "tag=vip&arg=invoice=INV-1&status=pending").content.decode()
    assert "<b>Tag</b> vip" in html
    assert "<b>Argument</b> invoice=INV-1" in html
    assert 'href="?status=pending&amp;arg=invoice%3DINV-1"' in html  # without the tag
    assert '<option value="customer.id=">' in html
    assert 'list="arguments"' in html
    assert '<a class="tag" href="?status=pending&amp;arg=invoice%3DINV-1&amp;tag=money">money</a>' in html
    job_page = viewer.get(reverse("admin:job", args=[searched[0].job_id])).content.decode()
    assert f'<a class="tag" href="{reverse("admin:jobs")}?tag=vip">vip</a>' in job_page
    assert f'<a class="tag" href="{reverse("admin:jobs")}?arg=invoice%3DINV-0">invoice=INV-0</a>' in job_page


def test_list_of_a_row_with_many_tags_shows_the_first(viewer):
    build.enqueue(tags=[f"t{n}" for n in range(6)])
    html = table(viewer, "")
    assert html.count('class="tag"') == 3
    assert '<span class="quiet">+3</span>' in html


def test_tag_that_reads_like_an_address_stays_one_value(viewer):
    job_id = build.enqueue(tags=["a&b=c#d/e?"])
    html = table(viewer, "")
    assert 'href="?tag=a%26b%3Dc%23d%2Fe%3F"' in html
    assert str(job_id) in table(viewer, "tag=a%26b%3Dc%23d%2Fe%3F")


def test_age_tells_younger_from_older(viewer):
    old = build.enqueue(now=build.T0, label="old")
    new = Job.objects.enqueue(build.KIND, {}).job_id
    younger = listing(viewer, "age=1h").content.decode()
    older = listing(viewer, "age=%3E1h").content.decode()
    assert (str(new) in younger, str(old) in younger) == (True, False)
    assert (str(new) in older, str(old) in older) == (False, True)


def test_search_for_a_whole_id_leads_to_the_job(viewer):
    (job_id,) = people.jobs(1)
    for text in (str(job_id), job_id.hex, f" {str(job_id).upper()} "):
        answer = listing(viewer, urllib.parse.urlencode({"q": text}))
        assert answer.headers["Location"] == reverse("admin:job", args=[job_id])
    unknown = listing(viewer, f"q={uuid.uuid4()}")
    assert unknown.status_code == 200


def test_error_code_finds_failed_jobs(viewer):
    lease = build.running()
    Job.objects.fail(lease, "HANDLER_CONTENT_FAILED", "no", now=build.at(1))
    html = listing(viewer, "error_code=HANDLER_CONTENT_FAILED&status=failed").content.decode()
    assert html.count('data-label="Attempt"') == 1
