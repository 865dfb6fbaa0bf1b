"""The page of tokens: a secret once, an end at once, and nobody lends what is not his."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from jobs.models import ApiToken, AuditEntry
from jobs.operations import proof
from tests.api.caller import Api
from tests.console.people import log_in

pytestmark = pytest.mark.looks_alike

PAGE = "/tokens/"


@pytest.fixture
def admin(browse):
    """An admin's browser, just logged in."""
    return browse("admin")


def issue(client, **more):
    given = {
        "name": "ci",
        "owner": "admin-1",
        "scopes": ["jobs:read"],
        "queues": "",
        "days": 7,
        "reason": "nightly",
    }
    return client.post(PAGE, given | more)


def secret_of(answer):
    return re.findall(rb"ilk_[\w-]{40,}", answer.content)[0].decode()


def test_secret_is_shown_once_and_works_until_it_is_ended(admin):
    answer = issue(admin, queues="mail, print")
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    secret = secret_of(answer)
    assert secret.encode() not in admin.get(PAGE).content
    assert Api(secret).look("/jobs").status_code == 200
    token = ApiToken.objects.get()
    assert (token.scopes, token.queues) == (["jobs:read"], ["mail", "print"])
    gone = admin.post(reverse("admin:token-revoke", args=[token.pk]), {"reason": "leaked"})
    assert gone.status_code == 302
    assert "is revoked." in admin.get(PAGE).content.decode()
    assert Api(secret).look("/jobs").status_code == 401
    entries = AuditEntry.objects.order_by("seq")
    assert [(e.action, e.actor, e.reason) for e in entries] == [
        ("issue_token", "admin-1", "nightly"),
        ("revoke_token", "admin-1", "leaked"),
    ]
    assert not any(secret in e.after or token.digest in e.after for e in entries)
    again = admin.post(reverse("admin:token-revoke", args=[token.pk]), {"reason": "leaked"})
    assert again.status_code == 409


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"scopes": ["jobs:write"]}, 400),
        ({"scopes": []}, 400),
        ({"name": ""}, 400),
        ({"name": "a\nb"}, 409),
        ({"queues": "a/b"}, 409),
        ({"days": "0"}, 400),
        ({"days": "x"}, 400),
        ({"owner": "nobody-there"}, 400),
        ({"reason": " "}, 400),
        ({"name": "\0"}, 400),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_and_makes_no_token(admin, given, status):
    assert issue(admin, **given).status_code == status
    assert not ApiToken.objects.exists()


def test_log_in_of_long_ago_issues_nothing_before_one_has_said_who_one_is(browse, django_user_model):
    client = browse("admin")
    person = django_user_model.objects.get(username="admin-1")
    person.set_password("correct horse")
    person.save()
    log_in(client, person)
    session = client.session
    session[proof.KEY] = 1
    session.save()
    asked = issue(client, scopes=["jobs:read", "jobs:enqueue"])
    assert b"Say once more who you are" in asked.content
    sent = dict(re.findall(r'type="hidden" name="(?!scopes)([^"]+)" value="([^"]*)"', asked.content.decode()))
    sent["scopes"] = ["jobs:read", "jobs:enqueue"]
    assert b"This is not your password" in client.post(PAGE, sent | {"password": "wrong"}).content
    back = client.post(PAGE, sent | {"password": "correct horse"})
    assert back.status_code == 200
    assert b'value="nightly"' in back.content
    kept = re.findall(r'name="scopes" value="([^"]+)"[^>]* checked', back.content.decode())
    assert kept == sent["scopes"]
    assert not ApiToken.objects.exists()
    assert issue(client).status_code == 200
    assert ApiToken.objects.count() == 1


def test_nobody_lends_what_another_has_above_him(admin, django_user_model):
    above = django_user_model.objects.create_superuser("above")
    assert issue(admin, owner="above").status_code == 409
    above.is_superuser = False
    above.save()
    above.user_permissions.set(Permission.objects.filter(codename__in=["view_job", "view_case"]))
    assert issue(admin, owner="above", scopes=["cases:act"]).status_code == 409, "the two of a decision"
    assert not ApiToken.objects.exists()
    assert issue(admin, owner="above").status_code == 200


def test_who_may_not_manage_tokens_neither_sees_nor_ends_one(admin, browse):
    secret = secret_of(issue(admin))
    operator, token = browse("operator"), ApiToken.objects.get()
    assert operator.get(PAGE).status_code == 403
    assert issue(operator).status_code == 403
    ending = operator.post(reverse("admin:token-revoke", args=[token.pk]), {"reason": "r"})
    assert ending.status_code == 403
    assert Api(secret).look("/jobs").status_code == 200
    assert admin.get(reverse("admin:token-revoke", args=[token.pk])).status_code == 302
    assert ApiToken.objects.get().revoked_at is None
