"""Budgets: each sort of request has its own, each caller has his, and who used one up is told how long."""

from __future__ import annotations

import pytest

from jobs.api import rates
from tests import build
from tests.api.caller import EVERY_SCOPE, Api, secret
from tests.build import KIND

pytestmark = pytest.mark.looks_alike

BUDGETS = ("READ", "ENQUEUE", "WORKER", "OPERATE")


@pytest.fixture
def one_a_second(db, settings, monkeypatch):
    """One request a second of each sort, and a clock that stands until it is moved."""
    settings.INTERLOCK = settings.INTERLOCK | {f"RATE_{name}": 1 for name in BUDGETS}
    clock = [1000.0]
    monkeypatch.setattr("jobs.api.rates.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(rates, "buckets", rates.Buckets())
    return clock


def test_budget_is_used_up_and_fills_again(one_a_second):
    api = Api(secret(*EVERY_SCOPE))
    answers = [api.look("/jobs") for _ in range(rates.BURST_SECONDS + 1)]
    assert [a.status_code for a in answers] == [200] * rates.BURST_SECONDS + [429]
    refused = answers[-1]
    assert (refused.json()["code"], refused.json()["retryable"], refused["Retry-After"]) == (
        "throttled",
        True,
        "1",
    )
    one_a_second[0] += 1
    assert [api.look("/jobs").status_code for _ in range(2)] == [200, 429]


def test_budgets_and_callers_do_not_share(one_a_second):
    api, job_id = Api(secret(*EVERY_SCOPE)), build.enqueue()
    while api.look("/jobs").status_code == 200:
        pass
    assert api.send({"kind": KIND}).status_code == 201
    assert api.send({"reason": "r"}, f"/jobs/{job_id}/cancel").status_code == 200
    assert Api(secret(*EVERY_SCOPE)).look("/jobs").status_code == 200
    while api.send({"kind": KIND}).status_code == 201:
        pass
    assert api.send({"reason": "r"}, f"/jobs/{job_id}/cancel").status_code == 200


def test_zero_is_no_limit(one_a_second, settings):
    settings.INTERLOCK = settings.INTERLOCK | {"RATE_READ": 0}
    api = Api(secret(*EVERY_SCOPE))
    assert {api.look("/jobs").status_code for _ in range(2 * rates.BURST_SECONDS)} == {200}
