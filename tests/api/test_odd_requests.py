"""Requests that a proxy, an old library or a curious person sends: a clear problem, no page and no guess."""

from __future__ import annotations

import uuid

import pytest
from django.test import RequestFactory

from console import errors
from jobs.admission import LONGEST_DELAY
from tests import build
from tests.api import described
from tests.api.caller import ROOT
from tests.api.test_links import BY_NAME, place

pytestmark = pytest.mark.looks_alike


def test_parameter_given_twice_is_refused_by_every_address_that_takes_it_once(ops):
    for operation in described.operations():
        address = operation.path
        for name in operation.parameters("path"):
            address = address.replace(f"{{{name}}}", str(uuid.uuid4()))
        for name, schema in operation.parameters("query").items():
            if schema["type"] == "array":
                continue
            answer = ops.generic(
                operation.method, address, b"x", "application/octet-stream", QUERY_STRING=f"{name}=1&{name}=1"
            )
            assert answer.status_code == 400, (operation.name, name)
            assert [e["detail"] for e in answer.json()["errors"]] == ["is given too often"], operation.name


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "BREW"])
def test_method_that_is_none_of_an_address_is_405_with_those_that_are(ops, method):
    answer = ops.generic(method, f"{ROOT}/jobs/{build.enqueue()}")
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
    assert answer.json()["code"] == "method-not-allowed"


def test_host_that_is_not_ours_is_told_so_in_json(client):
    answer = client.get(f"{ROOT}/jobs", headers={"host": "evil.example"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert b"evil" not in answer.content


def test_what_breaks_outside_the_views_is_told_in_json_with_what_became_of_it():
    for method, outcome in (("GET", "not_started"), ("POST", "unknown")):
        answer = errors.broken(RequestFactory().generic(method, f"{ROOT}/jobs"))
        assert (answer.status_code, answer["Content-Type"]) == (500, "application/problem+json")
        assert f'"outcome": "{outcome}"'.encode() in answer.content


def refuses(ops, operation, pointer, wrong):
    """Send a body that is right but for one place, which must be named; return the schema of that place."""
    told = BY_NAME[operation]
    assert told.body is not None
    body = inner = described.least(told.body)
    *way, last = [int(step) if step.isdigit() else step for step in pointer.split("/")[1:]]
    for step in way:
        inner = inner[step]
    inner[last] = wrong
    answer = ops.send(body, told.path.removeprefix(ROOT).replace("{attempt_id}", str(uuid.uuid4())))
    assert answer.status_code == 400
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]
    return place(told.body, pointer)


@pytest.mark.parametrize(
    ("operation", "pointer", "wrong"),
    [
        ("post_leases_attempt_id_effects", "/slot", "a b"),
        ("post_leases_attempt_id_effects", "/node_id", "é"),
        ("post_leases_attempt_id_fail", "/error_code", "lower_case"),
        ("post_leases_attempt_id_skip", "/error_code", "NODASH"),
        ("post_claims", "/worker/id", "\n"),
    ],
)
def test_shape_of_a_text_is_described_where_another_is_refused(ops, operation, pointer, wrong):
    assert "pattern" in refuses(ops, operation, pointer, wrong)


@pytest.mark.parametrize(
    ("operation", "pointer", "most"),
    [
        ("post_jobs", "/delay", LONGEST_DELAY),
        ("post_jobs", "/priority", 100),
        ("post_jobs_batch", "/jobs/0/max_attempts", 10_000),
        ("post_claims", "/wait", 30),
        ("post_leases_attempt_id_fail", "/retry_after", LONGEST_DELAY),
    ],
)
def test_number_is_described_with_the_most_that_is_taken(ops, operation, pointer, most):
    assert refuses(ops, operation, pointer, most + 1)["maximum"] == most


def test_name_of_an_upload_is_described_as_needed():
    (name,) = BY_NAME["post_leases_attempt_id_artefacts"].told["parameters"][1:]
    assert (name["name"], name["required"]) == ("name", True)
