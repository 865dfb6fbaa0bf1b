"""Whatever a remote worker's handler does, its job has a defined end, and the worker goes on."""

import threading
from datetime import UTC, datetime

import httpx
import pytest
from django.db import connection
from django.utils import timezone

from interlock_client import Client, Effect, Fail, Kind, NotFound, Problem, Sent, Skip, Wait, Worker
from jobs import effect_kinds
from jobs.api import room
from jobs.effect_kinds import effect_kind
from jobs.handlers import Options
from jobs.models import ApiToken, EffectSlot, Evidence, Job
from jobs.status import EffectStatus, JobStatus
from tests import build
from tests.api.caller import ROOT, operator, secret
from tests.api.test_waiting import until

RAISED, BAD = "RUNTIME_HANDLER_EXCEPTION", "RESULT_VALIDATION_FAILED"


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no repr")


def looped():
    found: list[object] = []
    found.append(found)
    return found


def raises(error):
    def handler(_ctx):
        raise error

    return handler


def returns(value):
    return lambda _ctx: value


def logs(line, times=1):
    def handler(ctx):
        for _ in range(times):
            ctx.log(line)
        raise ValueError("\N{GRINNING FACE}" * 20_000)

    return handler


BAD_ENDS = {
    "datetime": (returns(datetime(2026, 1, 1, tzinfo=UTC)), BAD),
    "set": (returns({1}), BAD),
    "nan": (returns(float("nan")), BAD),
    "looped": (returns(looped()), BAD),
    "unprintable": (returns(Unprintable()), BAD),
    "surrogate": (returns("\ud800"), BAD),
    "nul": (returns("\0"), BAD),
    "large": (returns("x" * 300_000), BAD),
    "huge": (returns("x" * 9_000_000), BAD),
    "mute": (raises(Mute()), RAISED),
    "nul.raised": (raises(ValueError("\0")), RAISED),
    "surrogate.raised": (raises(ValueError("\udcff")), RAISED),
    "nul.logged": (logs("\0"), RAISED),
    "surrogate.logged": (logs("\udcff"), RAISED),
    "huge.logged": (logs("\N{GRINNING FACE}" * 1000, 2000), RAISED),
    "code": (raises(Fail("no code", "the disk is full")), BAD),
    "code.object": (raises(Fail(Unprintable())), BAD),  # type: ignore[arg-type]
    "skip": (raises(Skip("no code")), BAD),
    "retry": (raises(Fail("SOME_INPUT_FAILED", retry_after=-1)), BAD),
    "wait": (returns(Wait(-1)), BAD),
    "wait.reason": (returns(Wait(1, "tomorrow")), BAD),
}


@pytest.fixture
def client(transactional_db, live_server, monkeypatch):
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.05)
    token = secret(*ApiToken.SCOPES, owner=operator())
    with Client(live_server.url + ROOT, token) as client:
        yield client
    for thread in threading.enumerate():
        if thread.name in ("waiting", "listener"):
            thread.join(30)  # it listens no longer than somebody waits


@pytest.fixture
def far():
    effect_kind("tests.far", replay="idempotent", amount="amount", label="to {to}")(lambda request: None)
    yield "tests.far"
    effect_kinds.forget("tests.far")


def enqueue(kind):
    return Job.objects.enqueue(kind, {}, options=Options(queue="default", max_attempts=1)).job_id


def all_ended():
    return not Job.objects.filter(finished_at=None).exists()


def work(client, kinds, *, end=all_ended, **more):
    """Run a remote worker until every job has ended, or `end` says so."""
    worker = Worker(
        client, queues=["default"], kinds=[Kind(name, handler) for name, handler in kinds.items()], **more
    )
    running = threading.Thread(target=worker._quietly)
    running.start()
    try:
        until(lambda: end() or not running.is_alive())
    finally:
        worker.stop()
        running.join()
    if worker.ended is not None:
        raise worker.ended


def test_whatever_a_handler_does_its_job_ends_and_the_worker_goes_on(client):
    for name in BAD_ENDS:
        enqueue(name)
    good = enqueue("good")
    work(client, {name: handler for name, (handler, _code) in BAD_ENDS.items()} | {"good": returns(1)})
    ended = dict(Job.objects.exclude(pk=good).values_list("kind", "error_code"))
    assert ended == {name: code for name, (_handler, code) in BAD_ENDS.items()}
    assert Job.objects.get(pk=good).status == JobStatus.SUCCEEDED
    assert "the disk is full" in Job.objects.get(kind="code").error_message


@pytest.mark.parametrize(
    "answer",
    [
        Sent(datetime(2026, 1, 1, tzinfo=UTC), "r"),
        Sent("\0", "r"),
        Sent("\ud800", "r"),
        Sent("x" * 2_000_000, "r"),
        Sent(Unprintable(), "r"),
        Sent({"id": 7}, "r" * 300),
        Sent({"id": 7}, 41),  # type: ignore[arg-type]
    ],
    ids=["object", "nul", "surrogate", "huge", "unprintable", "long reference", "number as reference"],
)
def test_what_was_sent_is_known_to_have_been_whatever_the_answer_looks_like(client, far, answer):
    sent = []

    def charge(ctx):
        ctx.effect(far, "charge", {"amount": "1", "to": "acme"})

    def send(request):
        sent.append(request.key)
        return answer

    enqueue("charge")
    work(client, {"charge": charge}, effects=[Effect(far, send)])
    slot = EffectSlot.objects.get()
    assert (slot.status, slot.reference) == (EffectStatus.COMMITTED, str(answer.reference)[:200])
    assert Evidence.objects.get(source="report").reference == slot.reference
    assert Job.objects.get().status == JobStatus.SUCCEEDED
    assert len(sent) == 1


def refused_at_once():
    raise ConnectionRefusedError("refused")


def refused_by_httpx():
    httpx.post("http://127.0.0.1:1/")


def times_out_then_refused():
    try:
        raise TimeoutError("no answer in time")
    except TimeoutError:
        refused_by_httpx()


@pytest.mark.parametrize(
    ("sending", "status"),
    [
        (refused_at_once, EffectStatus.ABSENT),
        (refused_by_httpx, EffectStatus.ABSENT),
        (times_out_then_refused, EffectStatus.UNKNOWN),
    ],
)
def test_a_function_that_tried_twice_is_not_taken_for_one_that_sent_nothing(client, far, sending, status):
    def charge(ctx):
        try:
            raise ValueError("of the handler's own, over when the effect is asked for")
        except ValueError:
            ctx.effect(far, "charge", {"amount": "1", "to": "acme"})

    enqueue("charge")
    reported = Evidence.objects.filter(source="report")
    work(client, {"charge": charge}, effects=[Effect(far, lambda _: sending())], end=reported.exists)
    assert reported.get().outcome == status


def test_two_sendings_of_one_passage_have_permissions_of_their_own(client):
    effect_kind("tests.asked", replay="queryable", settle_after=0)(lambda _: None).inquire(lambda _: None)
    grants = []

    def charge(ctx):
        return ctx.effect("tests.asked", "charge", {})

    def send(_request):
        grants.append(EffectSlot.objects.get().grant_id)
        connection.close()  # of this thread
        if len(grants) == 1:
            raise TimeoutError
        return Sent({})

    enqueue("charge")
    work(client, {"charge": charge}, effects=[Effect("tests.asked", send, lambda _: NotFound())])
    effect_kinds.forget("tests.asked")
    assert len(set(grants)) == 2


def test_a_handler_whose_effect_cannot_be_told_of_does_nothing_instead(client, far, monkeypatch):
    went_on = []
    told = threading.Event()

    def charge(ctx):
        try:
            ctx.effect(far, "charge", {"amount": "1", "to": "acme"})
        except Exception as error:  # noqa: BLE001  (as broad as a handler may be)
            went_on.append(error)

    def send(_request):
        ApiToken.objects.update(revoked_at=timezone.now())
        connection.close()  # of this thread
        told.set()
        return Sent({})

    enqueue("charge")
    with pytest.raises(Problem):
        work(client, {"charge": charge}, effects=[Effect(far, send)], end=told.is_set)
    assert EffectSlot.objects.get().status == EffectStatus.EXECUTING
    assert went_on == []


def test_a_lease_shorter_than_the_heartbeat_is_renewed_in_time(client):
    job = enqueue("short")
    build.edit(job, lease_seconds=3)
    seen = threading.Event()

    def short(ctx):
        seen.wait(60)
        ctx.checkpoint()
        return 1

    worker = Worker(client, queues=["default"], kinds=[Kind("short", short)])
    running = threading.Thread(target=worker.run)
    running.start()

    def lease():
        return Job.objects.values_list("lease_expires_at", flat=True).get(pk=job)

    try:
        until(lease)
        first = lease()
        until(lambda: lease() != first)
        seen.set()
        until(lambda: Job.objects.get(pk=job).finished_at)
    finally:
        seen.set()
        worker.stop()
        running.join()
    ended = Job.objects.get(pk=job)
    assert (ended.status, ended.attempt_count) == (JobStatus.SUCCEEDED, 1)
