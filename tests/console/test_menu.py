"""The menu, and how other applications add to it."""

import pytest
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import URLPattern, resolve, reverse

from console.site import register_page, site
from jobs.models import Job
from tests import build

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]


@pytest.fixture(autouse=True)
def _registry():
    before = list(site.registered)
    yield
    site.registered = before


def test_menu_shows_what_the_person_may_see(browse):
    admin, viewer = (browse(role).get("/").content.decode() for role in ("admin", "viewer"))
    tokens = reverse("admin:tokens")
    assert f'href="{tokens}"' in admin
    assert f'href="{tokens}"' not in viewer
    assert f'href="{reverse("admin:jobs")}"' in viewer


@pytest.mark.parametrize(
    ("path", "name"),
    [("/", "Overview"), ("/jobs/", "Jobs"), ("/jobs/attempt/", "Attempts"), ("/queues/", "Queues")],
)
def test_one_entry_is_where_we_are(viewer, path, name):
    html = viewer.get(path).content.decode()
    assert html.count('aria-current="page"') == 2  # the menu's and the breadcrumbs'
    assert f">{name}" in html.partition('aria-current="page"')[2][:200]


def test_job_belongs_to_the_list_of_jobs(viewer, job):
    html = viewer.get(reverse("admin:job", args=[job.id])).content.decode()
    assert html.partition('aria-current="page"')[2][:160].find(">Jobs") > 0


def test_menu_says_what_is_paused_and_silent_and_closed(viewer):
    Job.objects.pause_queue("mail", actor="a", reason="r", now=build.T0)
    Job.objects.close_claims(actor="a", reason="r", now=build.T0)
    html = viewer.get("/").content.decode()
    assert "1 paused" in html
    assert '<span class="n hot">closed</span>' in html


def test_registered_page_is_served_behind_log_in_and_permission(browse):
    register_page(
        "work", "Mine", "admin:mine", "jobs.view_payload", path="mine/", view=lambda _r: HttpResponse("mine")
    )
    page = next(p.callback for p in site.get_urls() if isinstance(p, URLPattern) and p.name == "mine")
    request = RequestFactory().get("/mine/")
    answers = []
    for role in ("adjudicator", "viewer", "anonymous"):
        request.user = resolve_user(browse, role)
        try:
            answers.append(page(request).status_code)
        except PermissionDenied:  # the handler makes a page of it
            answers.append(403)
    assert answers == [200, 403, 302]


def resolve_user(browse, role):
    from django.contrib.auth.models import AnonymousUser, User

    browse(role)
    return User.objects.filter(username=f"{role}-1").first() or AnonymousUser()


def test_registering_again_replaces_the_entry():
    register_page("work", "Mine", "admin:jobs", "jobs.view_job")
    register_page("work", "Ours", "admin:jobs", "jobs.view_job")
    assert [page.label for page in site.registered if page.url_name == "admin:jobs"] == ["Ours"]


def test_wrong_registration_is_refused():
    with pytest.raises(ValueError, match="section 'nowhere'"):
        register_page("nowhere", "x", "admin:x", "jobs.view_job")
    with pytest.raises(ValueError, match="named admin:"):
        register_page("work", "x", "other:x", "jobs.view_job", view=lambda _r: HttpResponse(), path="x/")


def test_page_of_another_application_stands_in_the_same_frame(viewer):
    assert resolve("/conversions/").url_name == "conversions"
    assert "console/console.css" in viewer.get("/conversions/").content.decode()
