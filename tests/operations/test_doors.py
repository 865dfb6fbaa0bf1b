"""Every operation through every door by every role: what a group's permissions say alone decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from console.groups import GROUPS
from jobs import effect_kinds
from jobs.ledger.clock import clock
from jobs.models import ApiToken, AuditEntry, Job, Proposal, Scheduler
from jobs.operations import cases
from jobs.status import JobStatus
from tests import build
from tests.api.caller import Api, secret
from tests.commands.conftest import manage
from tests.console.people import log_in
from tests.operations import scene

pytestmark = pytest.mark.django_db
WORKER = "host:1:a"
BECAUSE = {"reason": "because"}
DOORS = ("console", "api", "command")
ROLES = (*GROUPS, "nobody")


@dataclass(frozen=True)
class Person:
    """Somebody of one role, with his browser and his token, both of them fresh."""

    user: User
    browser: Client
    api: Api

    def shell(self, *words: object) -> Any:
        """Type a command."""
        return manage(*map(str, words), "--as", self.user.username, "--reason", "because")


Way = Callable[[Person], Any]


@dataclass(frozen=True)
class Operation:
    """What is done, who may, the entry that it leaves, and how each door is asked for it."""

    action: str
    permissions: set[str]
    ways: dict[str, Way]
    before: Callable[[], Any] = field(default=lambda: None)


def person(role: str) -> Person:
    user = User.objects.create_user(f"{role}-1", is_staff=True, last_login=timezone.now())
    if role in GROUPS:
        user.groups.set([Group.objects.get(name=role)])
    browser = Client()
    log_in(browser, user)
    return Person(user, browser, Api(secret(*ApiToken.SCOPES, owner=user)))


def on_job(name: str, permission: str, job: Job, command: bool = True, **body: Any) -> Operation:
    """Return an operation on one job; the console spells it as the API does."""
    data = BECAUSE | {"version": job.state_version}
    form = data | ({"arguments": "{}"} if name == "revise" else {})
    ways: dict[str, Way] = {
        "console": lambda who: who.browser.post(reverse(f"admin:job-{name}", args=[job.pk]), form),
        "api": lambda who: who.api.act(f"/jobs/{job.pk}/{name}", BECAUSE | body, job.state_version),
    }
    if command:
        ways["command"] = lambda who: who.shell("jobs", name, job.pk)
    return Operation(name.replace("-", "_"), {permission}, ways)


def on_queue(verb: str) -> Operation:
    paused = verb == "pause"
    form = {"queue": "mail", "seen": "", "length": "60"}

    def send(who: Person) -> Any:
        page = who.browser.get(reverse(f"admin:queue-{verb}") + "?queue=mail")
        seen = page.content.decode().partition('name="seen" value="')[2].partition('"')[0]
        return who.browser.post(reverse(f"admin:queue-{verb}"), BECAUSE | form | {"seen": seen})

    def ask(who: Person) -> Any:
        body = BECAUSE | {"paused": paused}
        return who.api.patch("/api/v1/queues/mail", body, content_type="application/json")

    def before() -> None:
        if not paused:
            Job.objects.pause_queue("mail", actor="somebody", reason="r")

    ways: dict[str, Way] = {
        "console": send,
        "api": ask,
        "command": lambda who: who.shell("queue", verb, "mail"),
    }
    return Operation(f"{verb}_queue", {"pause_queue"}, ways, before)


def on_claims(opening: bool) -> Operation:
    word = "open" if opening else "close"

    def send(who: Person) -> Any:
        page = who.browser.get(reverse(f"admin:claims-{word}"))
        seen = page.content.decode().partition('name="seen" value="')[2].partition('"')[0]
        return who.browser.post(reverse(f"admin:claims-{word}"), BECAUSE | {"seen": seen})

    ways: dict[str, Way] = {
        "console": send,
        "api": lambda who: who.api.send(BECAUSE | {"claims_open": opening}, "/epochs"),
        "command": lambda who: who.shell("epoch", f"{word}-claims"),
    }

    def before() -> None:
        if opening:
            Job.objects.close_claims(actor="somebody", reason="r")

    return Operation(f"{word}_claims", {"raise_epoch"}, ways, before)


def raising() -> Operation:
    epoch = Scheduler.objects.get().epoch

    def send(who: Person) -> Any:
        form = BECAUSE | {"epoch": epoch, "typed": f"raise {epoch} in DEMO"}
        page = who.browser.get(reverse("admin:epoch-raise")).content.decode()
        place = page.partition(f"raise {epoch} in ")[2].partition("<")[0]
        return who.browser.post(reverse("admin:epoch-raise"), form | {"typed": f"raise {epoch} in {place}"})

    ways: dict[str, Way] = {
        "console": send,
        "api": lambda who: who.api.send(BECAUSE | {"expected": epoch}, "/epochs"),
        "command": lambda who: who.shell("epoch", "raise", "--expected", epoch, "--yes"),
    }
    return Operation("raise_epoch", {"raise_epoch"}, ways)


def fencing() -> Operation:
    ways: dict[str, Way] = {
        "console": lambda who: who.browser.post(reverse("admin:worker-fence"), BECAUSE | {"worker": WORKER}),
        "api": lambda who: who.api.send(BECAUSE, f"/workers/{WORKER}/fence"),
        "command": lambda who: who.shell("workers", "fence", WORKER, "--yes"),
    }
    return Operation("fence_worker", {"fence_worker"}, ways)


def on_case() -> dict[str, Operation]:
    """Return a ruling, and what goes with a case; of another case, the word of a second person."""
    case = scene.unknown().case
    seen = cases.look(case.pk)
    at = {"version": case.version, "snapshot": seen.snapshot}
    verdict = at | BECAUSE | {"verdict": "happened", "reason_code": "other"}

    def post(name: str, *more: Any, **data: Any) -> Way:
        return lambda who: who.browser.post(reverse(f"admin:case-{name}", args=[case.pk, *more]), at | data)

    rule: dict[str, Way] = {
        "console": post("rule", **verdict),
        "api": lambda who: who.api.send(verdict, f"/cases/{case.pk}/rulings"),
        "command": lambda who: who.shell(
            *("effects", "rule", case.pk, "happened"),
            *("--snapshot", seen.snapshot, "--reason-code", "other"),
        ),
    }
    take: dict[str, Way] = {
        "console": post("take"),
        "api": lambda who: who.api.send({"version": case.version}, f"/cases/{case.pk}/take"),
    }
    both = {"rule_effect", "approve_ruling"}
    return {
        "rule": Operation("ruling_rule", {"rule_effect"}, rule),
        "take": Operation("take", both, take),
        "approve": second_person(),
    }


def second_person() -> Operation:
    matter = scene.unknown(second_person="always")
    asker = scene.user("asker", "rule_effect")
    matter.rule("did_not_happen", asker, now=clock())
    proposal, seen = Proposal.objects.get(), cases.look(matter.case.pk)
    at = {"version": seen.case.version, "snapshot": seen.snapshot}
    word = BECAUSE | {"snapshot": seen.snapshot, "proposal_id": str(proposal.pk), "decision": "approve"}
    url = reverse("admin:case-approve", args=[seen.case.pk, proposal.pk])
    ways: dict[str, Way] = {
        "console": lambda who: who.browser.post(url, BECAUSE | at),
        "api": lambda who: who.api.send(word, f"/cases/{seen.case.pk}/approvals"),
        "command": lambda who: who.shell("effects", "approve", proposal.pk, "--snapshot", seen.snapshot),
    }
    return Operation("ruling_approve", {"approve_ruling"}, ways)


@pytest.fixture
def operations() -> Iterator[dict[str, Operation]]:
    pending, failed, held = (Job.objects.get(pk=build.enqueue()) for _ in range(3))
    build.end(build.claim(failed.pk), JobStatus.FAILED)
    Job.objects.hold(held.pk, actor="somebody", reason="r")
    failed.refresh_from_db()
    held.refresh_from_db()
    build.register(WORKER)
    found = {
        "cancel": on_job("cancel", "cancel_job", pending),
        "force-cancel": on_job("force-cancel", "force_cancel_job", pending),
        "hold": on_job("hold", "hold_job", pending),
        "revise": on_job("revise", "revise_job", pending, command=False, arguments={}),
        "unhold": on_job("unhold", "hold_job", held),
        "retry": on_job("retry", "retry_job", failed),
        "pause": on_queue("pause"),
        "resume": on_queue("resume"),
        "fence": fencing(),
        "close": on_claims(opening=False),
        "open": on_claims(opening=True),
        "raise": raising(),
        **on_case(),
    }
    yield found
    effect_kinds.forget(scene.PAY)


@pytest.mark.parametrize("role", ROLES)
def test_operation_lands_exactly_where_the_group_holds_its_permission(role, operations):
    who, wrong = person(role), {}
    for name, operation in operations.items():
        for door, way in operation.ways.items():
            with build.undone():
                operation.before()
                earlier = AuditEntry.objects.count()
                way(who)
                left = [entry.action for entry in AuditEntry.objects.order_by("seq")[earlier:]]
            expected = [operation.action] if operation.permissions & set(GROUPS.get(role, ())) else []
            if left != expected:
                wrong[name, door] = left
    assert wrong == {}


def test_every_door_is_tried(operations):
    without = {name: set(DOORS) - operation.ways.keys() for name, operation in operations.items()}
    assert {name: doors for name, doors in without.items() if doors} == {
        "revise": {"command"},
        "take": {"command"},
    }
