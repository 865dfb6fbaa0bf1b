"""`manage.py token`: a secret is shown once, and a token that could do nothing is not made."""

import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from jobs.models import ApiToken
from tests.api.caller import EVERY_PERMISSION, Api, person

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]


WHO = ("--as", "root", "--reason", "asked for")


def run(*words):
    out, err = io.StringIO(), io.StringIO()
    call_command("token", *words, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def create(*more, user="ann", scopes="jobs:read"):
    return run("create", "--user", user, "--name", "ci", "--scopes", scopes, *WHO, *more)


def life(token):
    assert token.expires_at is not None
    return token.expires_at - timezone.now()


@pytest.fixture(autouse=True)
def ann(db):
    person("root", *EVERY_PERMISSION, "manage_token")
    return person("ann", *EVERY_PERMISSION)


def test_secret_alone_goes_to_the_output_and_works():
    out, err = create("--queues", "mail, print", scopes="jobs:read,jobs:enqueue,ops")
    secret = out.strip()
    assert secret not in err
    assert Api(secret).look("/jobs").status_code == 200
    token = ApiToken.objects.get()
    assert token.scopes == ["jobs:read", "jobs:enqueue", "ops"]
    assert token.queues == ["mail", "print"]
    assert timedelta(days=89, hours=23) < life(token) <= timedelta(days=90)


def test_days_are_as_asked():
    create("--days", "7")
    assert timedelta(days=6, hours=23) < life(ApiToken.objects.get()) <= timedelta(days=7)


def test_list_shows_no_secret_and_what_each_may_do():
    secret = create("--queues", "mail")[0].strip()
    ApiToken.objects.update(expires_at=timezone.now())
    live = create()[0].strip()
    lines = run("list")[0].splitlines()
    assert [line.split()[:2] for line in lines] == [[live[:12], "live"], [secret[:12], "expired"]]
    assert "queues mail" in lines[1]
    assert not any(secret[13:] in line or live[13:] in line for line in lines)


def test_revoked_token_is_over_at_once():
    secret = create()[0].strip()
    assert run("revoke", secret[:12], *WHO)[0] == "Revoked 1.\n"
    assert Api(secret).look("/jobs").status_code == 401
    with pytest.raises(CommandError, match="no live token"):
        run("revoke", secret[:12], *WHO)


@pytest.mark.parametrize("prefix", ["", "ilk_", "x" * 50])
def test_revoke_takes_no_part_of_a_prefix(prefix):
    create()
    with pytest.raises(CommandError, match="first 12 characters"):
        run("revoke", prefix, *WHO)
    assert ApiToken.objects.get().revoked_at is None


@pytest.mark.parametrize(
    "words",
    [
        ("--scopes", "jobs:write"),
        ("--scopes", ""),
        ("--scopes", "jobs:read", "--queues", "a/b"),
        ("--scopes", "jobs:read", "--queues", ","),
        ("--scopes", "jobs:read", "--days", "0"),
        ("--scopes", "jobs:read", "--days", "3651"),
        ("--scopes", "jobs:read", "--days", "٣"),
        ("--scopes", "jobs:read", "--name", ""),
        ("--scopes", "jobs:read", "--name", "n" * 101),
        ("--scopes", "jobs:read", "--user", "nobody"),
    ],
    ids=str,
)
def test_wrong_option_makes_no_token(words):
    given = ["--user", "ann", "--name", "ci", *WHO, *words]
    with pytest.raises(CommandError):
        run("create", *given)
    assert not ApiToken.objects.exists()


def test_scope_that_the_user_may_not_use_makes_no_token():
    person("bob", "view_job")
    with pytest.raises(CommandError, match=r"lacks the permission jobs\.cancel_job"):
        create(user="bob", scopes="jobs:read,jobs:cancel")
    assert not ApiToken.objects.exists()


def test_user_who_is_not_active_gets_none(ann):
    ann.is_active = False
    ann.save()
    with pytest.raises(CommandError, match="is closed"):
        create()
