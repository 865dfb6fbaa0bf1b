"""The API is what docs/openapi.yaml says: five thousand requests made from it, right and wrong."""

from __future__ import annotations

import itertools
import logging
import re
import uuid
from collections import Counter
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.staticfiles import finders
from django.test import Client
from django.utils import timezone
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from jobs import effect_kinds
from jobs.api import openapi, urls
from jobs.api.artefacts import Bytes
from jobs.effect_kinds import effect_kind
from jobs.models import ApiToken, Change, Job, Proposal
from jobs.models.plan import PlanAction
from jobs.operations import cases, plans
from jobs.status import JobStatus
from tests import build
from tests.api import described
from tests.api.caller import Api
from tests.api.worker import enqueued
from tests.build import KIND
from tests.operations import scene

NO_RATES = {f"RATE_{name}": 0 for name in ("READ", "ENQUEUE", "WORKER", "OPERATE")}
SEEDS, REQUESTS = 4, 2500
"""Worlds made of requests, and how many requests at least they come to, on each of the two databases."""


def test_committed_description_is_the_one_of_the_views():
    made = openapi.document()
    hint = "run `python -m config.openapi`"
    assert openapi.YAML.read_text("utf-8") == openapi.as_yaml(made), hint
    assert openapi.JSON.read_text("utf-8") == openapi.as_json(made), hint


def test_every_address_is_described_with_its_bodies_and_answers():
    found = [getattr(getattr(p, "callback", None), "view_class", None) for p in urls.urlpatterns[:-1]]
    views: set[Any] = {view for view in found if view}
    for view in views:
        for method in view.scopes:
            assert view.answers.get(method), (view.__name__, method)
            bodiless = method == "GET" or view.parser_classes == (Bytes,)
            assert bodiless or method in view.bodies, (view.__name__, method)
    assert len(described.operations()) == sum(len(view.scopes) for view in views)


@pytest.mark.looks_alike
def test_documentation_page_holds_no_inline_script_or_style_and_needs_no_log_in(client):
    answer = client.get("/api/v1/docs")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    assert not re.search(r"<style|<script(?![^>]* src=)|\son\w+=|\sstyle=|https?://", page)
    for name in re.findall(r'(?:src|href|data-description)="/static/([^"]+)"', page):
        assert finders.find(name), name


@pytest.fixture
def known(db, settings):
    """A world in which most operations can do something, and the names of what is in it."""
    settings.INTERLOCK = settings.INTERLOCK | {"WAIT_SECONDS": 0} | NO_RATES
    logging.getLogger("django.request").setLevel(logging.CRITICAL)  # thousands of refusals are the point
    found = [build.id_of(build.job(status)) for status in JobStatus]
    found += [build.enqueue({"hidden": "x"}, label="é", unique_key="k1"), build.enqueue(queue="mail")]
    matters = [scene.unknown(), scene.approval()]
    planner = scene.user("planner", "hold_job")
    planned = [
        plans.prepare(PlanAction.HOLD, Job.objects.all(), actor=planner, reason="r", ids=found) for _ in "123"
    ]
    build.register("w:1:a")
    seen = [cases.look(matter.case.id) for matter in matters]
    return {
        "job_id": [str(job_id) for job_id in found],
        "parent_id": [str(found[0])],
        "case_id": [str(view.case.id) for view in seen],
        "proposal_id": [str(pk) for pk in Proposal.objects.values_list("pk", flat=True)],
        "snapshot": [view.snapshot for view in seen],
        "version": [view.case.version for view in seen],
        "plan_id": [str(plan.id) for plan in planned],
        "name": ["default", "mail"],
        "queue": ["default", "mail"],
        "worker_id": ["w:1:a"],
        "kind": [KIND],
        "expected": [1, 2],
        "reason_code": ["other", "checked"],
    }


TURNS = {
    "every scope": 4,
    "session": 1,
    "some queues": 1,
    "one scope": 1,
    "no scope": 1,
    "owner without rights": 1,
    "session without rights": 1,
    "unknown token": 1,
    "nobody": 1,
}
"""Who asks, and how often each operation."""


@pytest.fixture
def callers(db):
    """One client for each of TURNS; for `one scope` one for each scope."""
    root = get_user_model().objects.create_superuser("root", last_login=timezone.now())
    weak = get_user_model().objects.create_user("weak")

    def token(user, *scopes, queues=()):
        return Api(ApiToken.objects.issue("t", user=user, scopes=list(scopes), queues=list(queues))[1])

    session, idle = Client(), Client()
    session.force_login(root)
    idle.force_login(weak)
    return {
        "every scope": token(root, *ApiToken.SCOPES),
        "session": session,
        "some queues": token(root, *ApiToken.SCOPES, queues=["mail"]),
        "no scope": token(root),
        "owner without rights": token(weak, *ApiToken.SCOPES),
        "session without rights": idle,
        "unknown token": Api("ilk_wrong"),
        "nobody": Client(),
    } | {scope: token(root, scope) for scope in ApiToken.SCOPES}


def refusal(mode: str, scope: str, operation: described.Operation) -> int:
    """Return the status that whatever this caller asks for must get; 0 for any that is right."""
    match mode:
        case "every scope" | "session" | "some queues":
            return 0
        case "one scope":
            return 0 if scope in operation.scopes else 403
        case "unknown token" | "nobody":
            return 401
    return 403


@pytest.fixture
def far(db):
    """An effect kind that only remote workers send."""
    effect_kind("tests.far", replay="non_replayable")(lambda request: None)
    yield "tests.far"
    effect_kinds.forget("tests.far")


def claim_anew(api: Any, known: dict[str, list[Any]], kind: str, *, grants: bool) -> None:
    """Put a lease into the world that is alive, with an effect that is prepared or may be sent."""
    # The requests so far may have closed everything.
    Job.objects.open_claims(actor="test", reason="r")
    Job.objects.resume_queue("default", actor="test", reason="r")
    enqueued(priority=100)
    worker, grant = f"far:1:{uuid.uuid4().hex}", {"grant_id": str(uuid.uuid4())}
    body = {"worker": {"id": worker}, "queues": ["default"], "kinds": [KIND]}
    (got,) = api.send(body, "/claims").json()["leases"]
    lease = got["lease"]
    known |= {"lease": [lease], "attempt_id": [lease["attempt_id"]], "id": [worker]}
    body = {"lease": lease, "kind": kind, "slot": "charge"} | (grant if grants else {})
    effect = api.send(body, f"/leases/{lease['attempt_id']}/effects").json()["effect"]
    known |= {"effect_id": [effect["id"]], "version": [*known["version"][:2], effect["version"]]}
    known |= {"grant_id": [grant["grant_id"]], "kind": [KIND, kind], "slot": ["charge"], "wait": [0]}


def test_no_request_gets_an_answer_that_is_not_described_or_has_a_wrong_one_accepted(known, callers, far):
    asked: Counter[tuple[str, str]] = Counter()
    well: Counter[str] = Counter()

    @settings(max_examples=SEEDS, phases=[Phase.explicit, Phase.reuse, Phase.generate], database=None)
    @given(seed=st.integers(0, 2**32))
    def ask(seed):
        with build.undone():
            ask_all(seed)

    def ask_all(seed):
        world = {**known}
        maker = described.Maker(seed, world)
        for operation in described.operations():
            if "worker" in operation.scopes:
                grants = operation.path.startswith("/api/v1/effects")
                claim_anew(callers["every scope"], world, far, grants=grants)
            changes = Change.objects.count()
            for mode in itertools.chain.from_iterable([mode] * turns for mode, turns in TURNS.items()):
                scope = maker.pick(ApiToken.SCOPES)
                first = not asked[operation.name, mode] % TURNS[mode]
                right = first and mode in ("every scope", "session")
                request = maker.right(operation) if right else maker.request(operation)
                client = callers[scope if mode == "one scope" else mode]
                status = checked(request, client, refusal(mode, scope, operation))
                asked[operation.name, mode] += 1
                well[operation.name] += status < 300
            assert operation.method != "GET" or Change.objects.count() == changes, operation.name

    ask()
    for operation, mode in itertools.product(described.operations(), TURNS):
        assert asked[operation.name, mode] == SEEDS * TURNS[mode]
    assert asked.total() >= REQUESTS
    assert well.total() > SEEDS * len(described.operations()), well
    assert len(+well) > len(described.operations()) // 2, well


def checked(request: described.Request, client: Any, refused: int) -> int:
    """Send a request, look at its answer, and return its status."""
    operation, answer = request.operation, request.send(client)
    told = (operation.name, request.path, request.query, request.headers, request.raw, answer.content)
    assert answer.status_code < 500, told
    assert not (violation := operation.violation(answer)), (violation, told)
    assert not request.invalid or answer.status_code >= 400, told
    # A body is judged by its headers before anybody asks whose it is.
    assert not refused or answer.status_code in (refused, 411, 413, 415), told
    status: int = answer.status_code
    return status
