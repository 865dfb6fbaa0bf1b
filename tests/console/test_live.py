"""Pages that refresh themselves: one region at a time, and not at all when nothing is new."""

import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from console.pages import DETAILS, MENU
from jobs.models import Job
from jobs.models.plan import PlanAction
from jobs.operations import plans
from tests import build
from tests.console import matters, people

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]
REGIONS = [
    ("index", "needs"),
    ("index", "proof"),
    ("index", "flow"),
    ("inbox", "table"),
    ("case", "state"),
    ("case", "evidence"),
    ("jobs", "counts"),
    ("jobs", "table"),
    ("job", "job"),
    ("case", "choices"),
    ("queues", "table"),
    ("workers", "table"),
    ("refusals", "table"),
    ("scheduler", "state"),
    ("drain", "checklist"),
    ("audit", "table"),
    ("plans", "table"),
    ("plan", "state"),
]
STILL = {"plan-execute", "plan-abort", "plan-rows", "tokens"}
"""What answers a form of a page with that page, a page of forms, and frozen rows: none refreshes itself."""


def refresh(client, url, region, **headers):
    return client.get(url, headers={"HX-Request": "true", "HX-Target": region, **headers})


def address(name, job):
    if name == "case":
        return reverse("admin:case", args=[matters.of(job)])
    if name == "plan":
        root = get_user_model().objects.create_superuser("root")
        ids = [build.enqueue()]
        plan = plans.prepare(PlanAction.CANCEL, Job.objects.all(), actor=root, reason="why", ids=ids)
        return reverse("admin:plan", args=[plan.pk])
    return reverse(f"admin:{name}", args=[job.id] if name == "job" else [])


def settled(html):
    """Return the html without what moves by itself: ages, and the exact instant of reading."""
    return re.sub(r"<time[^>]*>[^<]*</time>", "", html).split()


def test_every_region_is_tried_here():
    served = [page for page in [*MENU, *DETAILS] if page.view is not None]
    found = {
        (page.url_name.removeprefix("admin:"), region)
        for page in served
        for region in getattr(getattr(page.view, "view_class"), "regions", ())  # noqa: B009  (any callable)
    }
    assert {pair for pair in found if pair[0] not in STILL} == set(REGIONS)


@pytest.mark.parametrize(("name", "region"), REGIONS)
def test_region_is_the_same_in_the_page_and_alone(browse, job, name, region):
    client = browse("adjudicator" if name == "case" else "viewer")
    url = address(name, job)
    page = client.get(url).content.decode()
    alone = refresh(client, url, region)
    assert alone.status_code == 200
    fragment = alone.content.decode()
    assert "<html" not in fragment
    assert f'id="{region}"' in page
    whole = " ".join(settled(page))
    fragment = re.sub(
        '<p id="summary" hx-swap-oob.*?</p>', "", fragment, flags=re.S
    )  # for its place in the head
    assert " ".join(settled(fragment)) in whole


@pytest.mark.parametrize(("name", "region"), [pair for pair in REGIONS if pair[0] != "scheduler"])
def test_region_that_did_not_change_is_not_sent_again(viewer, job, name, region):
    url = address(name, job)
    tag = refresh(viewer, url, region).headers["ETag"]
    again = refresh(viewer, url, region, **{"If-None-Match": tag})
    assert again.status_code == 304
    assert again.content == b""


def test_region_that_changed_is_sent_again(viewer, job):
    url = reverse("admin:jobs")
    tag = refresh(viewer, url, "table").headers["ETag"]
    people.jobs(1)
    assert refresh(viewer, url, "table", **{"If-None-Match": tag}).status_code == 200
    url = address("job", job)
    tag = refresh(viewer, url, "job").headers["ETag"]
    Job.objects.force_cancel(job.id, state_version=job.state_version, actor="a", reason="r", now=build.at(9))
    assert refresh(viewer, url, "job", **{"If-None-Match": tag}).status_code == 200


def test_region_that_the_page_does_not_have_gets_the_page(viewer):
    assert "<html" in refresh(viewer, reverse("admin:index"), "nonsense").content.decode()


def test_page_and_fragment_are_told_apart_by_caches(viewer):
    for answer in (viewer.get("/"), refresh(viewer, "/", "needs")):
        assert {"HX-Request", "HX-Target"} <= {name.strip() for name in answer.headers["Vary"].split(",")}


def test_page_left_open_after_the_log_out_reloads_and_shows_no_log_in_form_inside():
    answer = refresh(Client(), "/", "needs")
    assert answer.status_code == 403
    assert answer.headers["HX-Refresh"] == "true"
    assert answer.content == b""


def test_refresh_needs_the_same_permission_as_the_page(browse):
    assert refresh(browse("nobody"), "/", "needs").status_code == 403


def test_filters_of_the_address_hold_for_the_refresh(viewer):
    build.running()
    people.jobs(2)
    html = refresh(viewer, reverse("admin:jobs") + "?status=running", "table").content.decode()
    assert html.count('data-label="Attempt"') == 1
    page = viewer.get(reverse("admin:jobs") + "?status=running").content.decode()
    assert 'hx-get="/jobs/?status=running&amp;top=' in page


def test_job_that_has_ended_refreshes_seldom(viewer):
    from jobs.status import JobStatus

    ended = viewer.get(
        reverse("admin:job", args=[build.id_of(build.job(JobStatus.SUCCEEDED))])
    ).content.decode()
    runs = viewer.get(reverse("admin:job", args=[build.id_of(build.running())])).content.decode()
    assert 'hx-trigger="every 15s, again"' in ended
    assert 'hx-trigger="every 3s, again"' in runs
