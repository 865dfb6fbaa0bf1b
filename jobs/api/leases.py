"""What a remote worker does with its leases: renew, stage, commit, and the other endings (contract §5).

Every one of them may be sent again when its answer was lost: what had landed answers as it did then.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import admission, canon, errors, redact
from jobs.api.auth import Caller
from jobs.api.claims import BEAT_GRAIN, WorkerBody
from jobs.api.fields import Anything, Choice, Flag, Instant, Seconds, Several, Shaped, Strict, Text, Whole
from jobs.api.presented import (
    EACH,
    LANDED,
    LARGEST,
    MOST,
    LeaseBody,
    WorkerView,
    landed,
    lease_of,
    leases_of,
    suffix,
    told,
)
from jobs.api.problems import Problem
from jobs.api.room import ROOM
from jobs.api.strictjson import pointer
from jobs.ledger import worker as worker_rows
from jobs.ledger.clock import clock
from jobs.ledger.session import transact
from jobs.models import EffectSlot, Job, Worker
from jobs.outcomes import Ending, Lease
from jobs.status import WaitReason
from jobs.vocabulary import JOB


class BeatingBody(WorkerBody):
    """Who renews: `running` jobs now; `stopping` once it claims no more, `stopped` with its last word."""

    stopping = Flag(required=False)
    running = Whole(least=0, most=LARGEST, required=False)
    stopped = Flag(required=False)


class RenewBody(Strict):
    """The body of a renewal."""

    worker = BeatingBody(required=False)
    leases = Several(LeaseBody(), least=0, most=MOST)


class RenewView(WorkerView):
    """`/leases/renew`: extend leases; a result for each, in order."""

    bodies = {"POST": RenewBody}
    answers = EACH
    body_limit = "BATCH_BYTES"

    def post(self, request: Request) -> Response:
        caller, body = Caller.of(request), self.body(request)
        leases = leases_of(caller, body["leases"], at="/leases/{}")
        outcomes = Job.objects.runtime.renew(leases)
        if worker := body.get("worker"):
            _beat(f"{worker['id']}{suffix(caller)}", worker)
        return Response({"results": [told(outcome) for outcome in outcomes]})


def _beat(worker_id: str, said: dict[str, Any]) -> None:
    """Move a registered worker's beat on; one that never claimed has no row, and gets none."""
    row = Worker.objects.filter(pk=worker_id, stopped_at=None).first()
    stopped = said.get("stopped", False)
    stopping = stopped or said.get("stopping", False)
    news = stopped or (stopping and row is not None and row.stopping_at is None)
    if row is None or (not news and clock() - row.beat_at < BEAT_GRAIN):
        return
    values = {"running": said.get("running", row.running), "epoch": row.scheduler_epoch, "passes": row.passes}
    transact(
        lambda session: worker_rows.beat(session, id=worker_id, stopping=stopping, stopped=stopped, **values),
        using=Job.objects.db,
        vocabulary=JOB,
        durable=False,
        fenced=False,
    )
    if stopping:
        ROOM.call_worker(worker_id)


# -- results ----------------------------------------------------------------------------------------------


class StageBody(Strict):
    """The body of a stage; without a result, null is the result."""

    lease = LeaseBody()
    result = Anything(required=False)


class StageView(WorkerView):
    """`/leases/{attempt}/stage`: keep a result for the attempt without making it the job's."""

    bodies = {"POST": StageBody}
    answers = LANDED

    def post(self, request: Request, attempt_id: str) -> Response:
        body = self.body(request)
        lease = lease_of(Caller.of(request), body["lease"], attempt_id)
        text, digest = _result(body.get("result"), "/result")
        return Response(landed(Job.objects.runtime.stage(lease, text, digest)))


class CommitBody(StageBody):
    """The body of a commit: a `result`, or the `result_digest` of a staged one."""

    result_digest = Text(least=1, most=64, required=False)
    log = Text(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "result" in attrs and "result_digest" in attrs:
            raise serializers.ValidationError({"result_digest": [_("Give either result or result_digest.")]})
        return attrs


class CommitView(WorkerView):
    """`/leases/{attempt}/commit`: make a result the job's one canonical result."""

    bodies = {"POST": CommitBody}
    answers = LANDED

    def post(self, request: Request, attempt_id: str) -> Response:
        caller, body = Caller.of(request), self.body(request)
        lease = lease_of(caller, body["lease"], attempt_id, with_input="log" in body)
        logs = {lease.attempt_id: log} if (log := _log(lease, body)) is not None else {}
        return Response(landed(Job.objects.runtime.commit([(lease, *_to_commit(body, ""))], logs=logs)[0]))


class CommitsBody(Strict):
    """The body of many commits."""

    commits = Several(CommitBody(), most=MOST)


class CommitsView(WorkerView):
    """`/leases/commit`: many at once, each judged alone; a result for each, in order."""

    bodies = {"POST": CommitsBody}
    answers = EACH
    body_limit = "BATCH_BYTES"
    extra_depth = 3

    def post(self, request: Request) -> Response:
        caller, bodies = Caller.of(request), self.body(request)["commits"]
        leases = leases_of(
            caller,
            [body["lease"] for body in bodies],
            at="/commits/{}/lease",
            with_input=any("log" in body for body in bodies),
        )
        results = [
            (lease, *_to_commit(body, f"/commits/{number}"))
            for number, (lease, body) in enumerate(zip(leases, bodies, strict=True))
        ]
        logs = {
            lease.attempt_id: log
            for lease, body in zip(leases, bodies, strict=True)
            if (log := _log(lease, body)) is not None
        }
        outcomes = Job.objects.runtime.commit(results, logs=logs)
        return Response({"results": [told(outcome) for outcome in outcomes]})


def _to_commit(body: dict[str, Any], at: str) -> tuple[str | None, str]:
    if (digest := body.get("result_digest")) is not None:
        return None, digest
    return _result(body.get("result"), f"{at}/result")


def _result(value: Any, at: str) -> tuple[str, str]:
    try:
        return admission.result(value)
    except canon.NotCanonical as error:
        raise bad(at + error.path, error.problem) from None


def bad(at: str, problem: str) -> Problem:
    """Return the problem of one member of a body."""
    return Problem("invalid-body", errors=[{"pointer": at, "detail": problem}])


def _log(lease: Lease, body: dict[str, Any]) -> str | None:
    """Return the log of an attempt as it is kept: bounded, without the input's secrets."""
    if "log" not in body:
        return None
    limits = settings.INTERLOCK
    most = limits["LOG_LINES"] * limits["LOG_LINE_BYTES"]
    return redact.clean(body["log"], limit=most, secrets=admission.secrets_of(lease))


# -- the other endings ------------------------------------------------------------------------------------


class EndingBody(Strict):
    """What every other ending may say."""

    lease = LeaseBody()
    message = Text(required=False)
    log = Text(required=False)


class CodedBody(EndingBody):
    """An ending with an error code."""

    error_code = Shaped(
        errors.SHAPE,
        gettext_lazy("An error code is written LIKE_THIS, at most 80 characters."),
        least=1,
        most=80,
    )


class FailBody(CodedBody):
    """The body of a failure."""

    retry_after = Seconds(required=False)
    traceback = Text(required=False)


class WaitBody(Strict):
    """The body of a wait: `seconds` or `until`; for an approval an `effect_id` and no time."""

    lease = LeaseBody()
    seconds = Seconds(required=False)
    until = Instant(required=False)
    reason = Choice([reason.value for reason in WaitReason], required=False)
    effect_id = Text(least=1, most=64, required=False)
    log = Text(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        named = [name for name in ("seconds", "until", "effect_id") if name in attrs]
        wanted = "effect_id" if attrs.get("reason") == WaitReason.APPROVAL else "seconds"
        if named != [wanted] and not (wanted == "seconds" and named == ["until"]):
            raise serializers.ValidationError(
                {wanted: [_("Give seconds or until; with the reason approval an effect_id, and no time.")]}
            )
        return attrs


class UncertainBody(Strict):
    """The body of an uncertain ending; another `payload` for an effect is a conflict for a person."""

    lease = LeaseBody()
    note = Text(required=False)
    reference = Text(most=200, required=False)
    effect_id = Text(least=1, most=64, required=False)
    payload = Anything(required=False)
    log = Text(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "effect_id" in attrs and "payload" in self.initial_data:
            attrs.setdefault("payload", None)  # null is a payload too
        if ("effect_id" in attrs) != ("payload" in attrs):
            raise serializers.ValidationError({"effect_id": [_("Give effect_id and payload, or neither.")]})
        return attrs


class EndingView(WorkerView):
    """Give a job up; the answer's `status` is what became of it."""

    answers = LANDED

    def post(self, request: Request, attempt_id: str) -> Response:
        body = self.body(request)
        lease = lease_of(Caller.of(request), body["lease"], attempt_id, with_input=True)
        ending = self.ending(lease, body, _log(lease, body))
        return Response(landed(Job.objects.runtime.end([ending])[0]))

    def ending(self, lease: Lease, body: dict[str, Any], log: str | None) -> Ending:
        """Return how the holder wants to give its job up."""
        raise NotImplementedError


class FailView(EndingView):
    """`/leases/{attempt}/fail`: it failed; `retry_after`, or the code's entry, says whether to try again."""

    bodies = {"POST": FailBody}

    def ending(self, lease: Lease, body: dict[str, Any], log: str | None) -> Ending:
        return admission.failure(
            lease,
            body["error_code"],
            body.get("message", ""),
            retry_after=body.get("retry_after"),
            traceback=body.get("traceback", ""),
            log=log,
        )


class ReleaseView(EndingView):
    """`/leases/{attempt}/release`: give the job back unharmed; costs no attempt."""

    bodies = {"POST": EndingBody}

    def ending(self, lease: Lease, body: dict[str, Any], log: str | None) -> Ending:
        message = _words(lease, body)
        return Ending.release(lease, error_code="WORKER_LEASE_RELEASED", message=message, log=log)


class WaitView(EndingView):
    """`/leases/{attempt}/wait`: give the lease up until later; costs no attempt."""

    bodies = {"POST": WaitBody}

    def ending(self, lease: Lease, body: dict[str, Any], log: str | None) -> Ending:
        seconds, effect_id = body.get("seconds"), body.get("effect_id", "")
        if "until" in body:
            seconds = min(max(0.0, (body["until"] - clock()).total_seconds()), admission.LONGEST_DELAY)
        if effect_id:
            _need_effect(lease, effect_id)
        reason = WaitReason(body.get("reason", WaitReason.TIMER))
        total = admission.longest_wait(lease.kind)
        return Ending.wait(lease, reason, seconds=seconds, total=total, log=log, effect_id=effect_id)


class SkipView(EndingView):
    """`/leases/{attempt}/skip`: there is nothing to do."""

    bodies = {"POST": CodedBody}

    def ending(self, lease: Lease, body: dict[str, Any], log: str | None) -> Ending:
        return Ending.skip(lease, body["error_code"], _words(lease, body), log=log)


class UncertainView(EndingView):
    """`/leases/{attempt}/uncertain`: nobody knows whether an effect took place, or which payload stands."""

    bodies = {"POST": UncertainBody}

    def ending(self, lease: Lease, body: dict[str, Any], log: str | None) -> Ending:
        if "payload" not in body:
            reference = _words(lease, body, "reference")
            return Ending.uncertain(lease, _words(lease, body, "note"), reference=reference, log=log)
        _need_effect(lease, body["effect_id"])
        text = payload_text(body["payload"])
        return Ending.payload_conflict(lease, body["effect_id"], text, canon.digest(text), log=log)


class AcknowledgeView(EndingView):
    """`/leases/{attempt}/acknowledge-cancel`: stop because a cancel was requested."""

    bodies = {"POST": EndingBody}

    def ending(self, lease: Lease, body: dict[str, Any], log: str | None) -> Ending:
        return Ending.acknowledge_cancel(lease, message=_words(lease, body), log=log)


def _words(lease: Lease, body: dict[str, Any], name: str = "message") -> str:
    return admission.words(lease, body.get(name, ""))


def payload_text(value: Any) -> str:
    """Return an effect's payload as canonical JSON; raises Problem with the place of what is none."""
    limits = settings.INTERLOCK
    try:
        return canon.canonical(value, depth=limits["DEPTH"], limit=limits["ARGUMENT_BYTES"])
    except canon.NotCanonical as error:
        raise bad("/payload" + error.path, error.problem) from None


def _need_effect(lease: Lease, effect_id: str) -> None:
    if not EffectSlot.objects.filter(pk=effect_id, job_id=lease.job_id).exists():
        raise bad(pointer("", "effect_id"), _("The job has no such effect."))


ENDINGS: dict[str, type[EndingView]] = {
    "fail": FailView,
    "release": ReleaseView,
    "wait": WaitView,
    "skip": SkipView,
    "uncertain": UncertainView,
    "acknowledge-cancel": AcknowledgeView,
}
