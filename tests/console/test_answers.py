"""What every answer of the console carries, and what it never does."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from tests.console.test_access import MATRIX, one_of_each  # noqa: F401  (a fixture)

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]
INLINE = re.compile(
    r"<script(?![^>]*\bsrc=)|<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:|hx-on", re.IGNORECASE
)


def pages(browse, job):
    """Yield the answers of all pages, errors included."""
    client = browse("admin")
    for name, row in MATRIX.items():
        if name == "admin:conversion-file":
            continue
        who = Client() if name == "admin:login" else client
        url = "/no/such/page/" if name == "admin:" else reverse(name, args=row.arguments(job))
        yield name, who.get(url)
    yield "400", client.get("/jobs/?kind=%00")
    yield "filter", client.get("/jobs/?statee=x")
    yield "403", browse("nobody").get("/")
    yield "404", client.get("/jobs/00000000-0000-0000-0000-000000000000/")
    yield "log-in refused", Client().post("/login/", {"username": "x", "password": "y"})
    yield "host", client.get("/", headers={"host": "evil.example"})


@pytest.fixture(scope="module")
def _asked():
    return []


@pytest.fixture
def answers(_asked, browse, one_of_each):  # noqa: F811
    """Name, headers and text of each answer; asked for once for all that is said of them."""
    if not _asked:
        _asked += [
            (name, answer.headers, b"".join(answer).decode()) for name, answer in pages(browse, one_of_each)
        ]
    return _asked


def test_no_answer_holds_a_script_or_a_style_of_its_own(answers):
    for name, _headers, text in answers:
        found = INLINE.search(text)
        assert found is None, (name, found)


def test_every_answer_carries_the_policy(answers):
    for name, headers, _text in answers:
        policy = headers.get("Content-Security-Policy", "")
        assert "script-src 'self'" in policy, name
        assert "style-src 'self'" in policy, name
        assert "unsafe" not in policy, name


def test_no_answer_may_be_kept(answers):
    for name, headers, _text in answers:
        assert "no-store" in headers.get("Cache-Control", ""), name


def test_error_page_shows_nothing_of_the_error(browse, monkeypatch):
    client = browse("viewer")
    client.raise_request_exception = False

    def break_down(*_args: object) -> None:
        raise RuntimeError("secret-of-the-server")

    monkeypatch.setattr("console.needs.read", break_down)
    answer = client.get("/")
    html = answer.content.decode()
    assert answer.status_code == 500
    assert "secret-of-the-server" not in html
    assert "Traceback" not in html
    assert "Something broke on our side" in html
    assert "no-store" in answer.headers["Cache-Control"]
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]


def test_error_page_asks_the_database_nothing(browse, monkeypatch, django_assert_num_queries):
    from django.test import RequestFactory

    from console import errors

    with django_assert_num_queries(0):
        assert errors.broken(RequestFactory().get("/")).status_code == 500


@pytest.mark.parametrize(
    ("path", "words"), [("/nowhere/", "There is nothing here"), ("/?%00=1", "cannot be understood")]
)
def test_error_page_has_the_consoles_look(viewer, path, words):
    html = viewer.get(path).content.decode()
    assert words in html
    assert "console/console.css" in html
    assert 'id="branding"' in html


def test_form_without_its_token_is_refused_in_the_same_look(django_user_model):
    answer = Client(enforce_csrf_checks=True).post("/login/", {"username": "a", "password": "b"})
    assert answer.status_code == 403
    assert "This form has grown old" in answer.content.decode()


def test_log_in_leads_to_the_page_that_was_asked_for(django_user_model, browse):
    browse("viewer")
    user = django_user_model.objects.get(username="viewer-1")
    user.set_password("a password")
    user.save()
    client = Client()
    asked = client.get("/jobs/?status=failed")
    assert asked.headers["Location"] == "/login/?next=/jobs/%3Fstatus%3Dfailed"
    done = client.post(
        asked.headers["Location"],
        {"username": "viewer-1", "password": "a password", "next": "/jobs/?status=failed"},
    )
    assert done.headers["Location"] == "/jobs/?status=failed"


def test_log_in_leads_to_no_foreign_place(django_user_model, browse):
    browse("viewer")
    user = django_user_model.objects.get(username="viewer-1")
    user.set_password("a password")
    user.save()
    form = {"username": "viewer-1", "password": "a password", "next": "https://evil.example/"}
    assert "evil" not in Client().post("/login/", form).headers["Location"]
