"""Bugs that APIs like this one have had, each with the tests that would see it here.

| bug | what it was | seen by |
|---|---|---|
| S60 | U+0000 is a 500 on PostgreSQL | here; test_list, test_bodies (paths, header, cookie, JSON) |
| S61 | a lone surrogate is stored | test_strictjson, test_bodies, test_job; pairs: test_enqueue |
| S62 | NaN, 10^400, a key twice | test_strictjson, test_bodies; results: tests/worker/test_bad_endings |
| S63 | deep nesting is a 500 | test_strictjson, test_bodies (the deepest that is taken can be shown) |
| S64 | a huge number in a filter, an id, a body | here (If-Match); test_list, test_bodies, test_enqueue |
| S65 | an oversized page, another's cursor | here; test_list |
| S66 | dates at the ends of the calendar | test_list, test_enqueue |
| S67 | an unknown filter is ignored | here (every list); test_list, test_plans (mass actions) |
| S68 | a malformed UUID is a 500 | here; test_list, test_bodies |
| S69 | a cursor over rows that come and go | test_list, for every order of events |
| S70 | a feed skips what commits late | test_feed |
| S71 | an over-long value is a 500 | here; test_enqueue, test_bodies, test_cancel, test_operate |
| S72 | a list counts the whole table | test_list (statements, no COUNT unless asked for, and then bounded) |

All addresses and members besides, with whatever comes to mind: tests/fuzz and test_fuzz.
"""

from __future__ import annotations

import uuid
from urllib.parse import parse_qs, urlsplit

import pytest

from jobs.models import AuditEntry, Comment
from tests import build
from tests.api.caller import ROOT
from tests.operations import scene

pytestmark = pytest.mark.looks_alike

LISTS = ["/jobs", "/cases", "/events", "/queues", "/workers"]


def wrong(answer):
    assert answer.status_code == 400, answer.content
    return [error["parameter"] for error in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "cases/{}"),
        ("POST", "cases/{}/take"),
        ("GET", "bulk-plans/{}"),
        ("POST", "bulk-plans/{}/execute"),
        ("GET", "queues/{}"),
        ("PATCH", "queues/{}"),
        ("POST", "workers/{}/fence"),
        ("POST", "jobs/{}/retry"),
        ("GET", "jobs/{}/explain"),
        ("POST", "effects/{}/report"),
        ("POST", "leases/{}/stage"),
    ],
)
def test_part_of_an_address_that_names_nothing_is_refused(ops, method, path):  # S60, S64, S68
    body = b'{"reason":"r","paused":true,"version":1}'
    for part in ("%00", "%ff", "%ed%a0%80", "9" * 101, "{}", "x" * 5000):
        answer = ops.generic(method, f"{ROOT}/{path.replace('{}', part)}", body, "application/json")
        assert answer.status_code in (400, 404), (part, answer.content)
        assert answer["Content-Type"] == "application/problem+json"
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("path", "parameter"),
    [
        *((path, "statee") for path in LISTS),
        *((f"/cases?{name}=%00", name) for name in ("kind", "effect_kind", "owner", "job", "cursor")),
        ("/events?after=%00", "after"),
        ("/events?limit=" + "9" * 40, "limit"),
        ("/workers?limit=1e3", "limit"),
        ("/cases?job={00000000-0000-0000-0000-000000000000}", "job"),
        ("/cases?state=OPEN", "state"),
    ],
)
def test_parameter_of_any_list_is_known_and_right_or_refused(ops, path, parameter):  # S60, S65, S67, S68
    asked = path if "?" in path else f"{path}?{parameter}=failed"
    assert wrong(ops.look(asked)) == [parameter]


def test_cursor_of_another_list_is_refused(ops):  # S65
    scene.unknown()
    scene.unknown()
    cursors = {}
    for path in ("/jobs", "/cases"):
        following = ops.look(f"{path}?limit=1").json()["next"]
        cursors[path] = parse_qs(urlsplit(following).query)["cursor"][0]
    assert wrong(ops.look(f"/jobs?cursor={cursors['/cases']}")) == ["cursor"]
    assert wrong(ops.look(f"/cases?cursor={cursors['/jobs']}")) == ["cursor"]
    assert len(ops.look(f"/cases?cursor={cursors['/cases']}").json()["results"]) == 1


@pytest.mark.parametrize("tag", ['"2147483648"', f'"{10**30}"', '"-1"', '"１"', '"\0"', "*"])
def test_version_that_the_job_never_had_is_stale(ops, tag):  # S60, S64
    job_id = build.enqueue()
    answer = ops.act(f"/jobs/{job_id}/hold", {"reason": "r"}, tag.encode().decode("latin-1"))
    assert (answer.status_code, answer.json()["current"]["id"]) == (412, str(job_id))


@pytest.mark.parametrize("version", [2**31, 2**63, 10**30, -1, 1.0, "1"])
def test_version_that_the_case_never_had_changes_nothing(ops, version):  # S64
    case = scene.unknown().case
    answer = ops.send({"version": version, "text": "x"}, f"/cases/{case.id}/comment")
    assert answer.status_code in (400, 412), answer.content
    assert not Comment.objects.exists()


def test_texts_of_people_at_their_limit_are_kept_whole(ops):  # S71
    words = "\N{MUSICAL SYMBOL G CLEF}é" * 500
    assert ops.act(f"/jobs/{build.enqueue()}/hold", {"reason": words}, 1).status_code == 200
    assert AuditEntry.objects.get().reason == words
    case = scene.unknown().case
    told = ops.send({"version": case.version, "text": words * 2}, f"/cases/{case.id}/comment").json()
    assert [comment["text"] for comment in told["comments"]] == [words * 2]


def test_name_of_a_job_that_nobody_has_is_an_empty_list_for_any_uuid(ops):  # S68
    for text in (str(uuid.UUID(int=0)), uuid.uuid4().hex.upper()):
        assert ops.look(f"/jobs?id={text}").json()["results"] == []
        assert ops.look(f"/cases?job={text}").json()["results"] == []
