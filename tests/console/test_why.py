"""The reason in a row of the list and on a job's page: it leads to the case, and to what failed alike."""

import re

import pytest
from django.urls import reverse

from jobs.models import Job
from tests import build
from tests.console import matters

pytestmark = pytest.mark.django_db


def table(client, query=""):
    """Return the list alone."""
    headers = {"HX-Request": "true", "HX-Target": "table"}
    return client.get(reverse("admin:jobs") + query, headers=headers).content.decode()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("unknown", "The outcome of to acme (42.00 EUR) is unknown"),
        ("conflict", "Payload conflict: what the job brought for to acme (42.00 EUR)"),
    ],
)
def test_row_and_page_of_an_uncertain_job_name_the_effect_and_lead_to_its_case(viewer, kind, words):
    case = matters.open_case(kind)
    link = f'href="{reverse("admin:case", args=[case.pk])}"'
    page = viewer.get(reverse("admin:job", args=[case.job_id])).content.decode()
    for html in (table(viewer), page):
        assert words in re.sub(r"</?a\b[^>]*>", "", html)
        assert link in html


def test_case_is_no_link_for_who_may_not_see_cases(django_user_model, browse):
    case = matters.open_case()
    client = browse("viewer")
    user = django_user_model.objects.get(username="viewer-1")
    group = user.groups.get()
    user.user_permissions.set(group.permissions.exclude(codename="view_case"))
    user.groups.clear()
    html = table(client)
    assert "The outcome of to acme" in html
    assert str(case.pk) not in html


def test_settled_conflict_is_not_said_to_be_an_unknown_outcome(viewer):
    case = matters.open_case("conflict", status="committed")
    build.edit(case.job_id, open_effects=0)
    html = viewer.get(reverse("admin:job", args=[case.job_id])).content.decode()
    assert "It is not known whether something happened outside" not in html
    assert "0 outside effects" not in html


def test_error_code_in_a_row_leads_to_the_jobs_that_met_it(viewer):
    lease = build.running()
    assert Job.objects.fail(lease, "HANDLER_CONTENT_FAILED", "<b>no</b> good", now=build.at(1)).landed
    build.enqueue()
    html = table(viewer)
    assert (
        '<a class="cell" href="?error_code=HANDLER_CONTENT_FAILED">HANDLER_CONTENT_FAILED</a>: &lt;b&gt;no'
        in html
    )
    found = table(viewer, "?error_code=HANDLER_CONTENT_FAILED")
    assert found.count("<tr data-row") == 1


def test_hold_in_a_row_names_the_person_and_the_reason(viewer):
    job_id = build.enqueue()
    Job.objects.hold(job_id, actor="ada", reason="look <first>", now=build.at(3))
    html = table(viewer)
    assert "by ada: look &lt;first&gt;" in html
