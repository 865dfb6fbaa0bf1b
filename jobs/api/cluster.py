"""The cluster over HTTP: queues, workers, the epoch, and whether it may be stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext as _
from rest_framework import serializers, status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import handlers
from jobs.api import filters, paging, schema
from jobs.api.auth import Caller
from jobs.api.fields import Choice, Flag, Id, Instant, Reason, Strict, Whole
from jobs.api.problems import refused
from jobs.api.schema import FLAG, INSTANT, OBJECT, TEXT, WHOLE, maybe, record
from jobs.api.view import View
from jobs.ledger.clock import clock
from jobs.models import Scheduler, Worker
from jobs.operations import cluster, drain, exposure, queues, raising, workers
from jobs.operations.cluster import HIGHEST_FLOOR
from jobs.operations.drain import Verdict
from jobs.outcomes import Refused

QUEUE = record(
    {
        "name": TEXT,
        "paused": FLAG,
        "paused_at": maybe(INSTANT),
        "paused_until": maybe(INSTANT),
        "paused_by": TEXT,
        "reason": TEXT,
        "ready": WHOLE,
        "ready_is_exact": FLAG,
    }
)
WORKER = record(
    {
        "id": TEXT,
        "host": TEXT,
        "pid": WHOLE,
        "version": TEXT,
        "queues": schema.rows(TEXT),
        "kinds": schema.rows(TEXT),
        "concurrency": WHOLE,
        "scheduler_epoch": WHOLE,
        "started_at": INSTANT,
        "beat_at": INSTANT,
        "stopping_at": maybe(INSTANT),
        "stopped_at": maybe(INSTANT),
        "fenced_at": maybe(INSTANT),
        "fenced_by": TEXT,
        "state": TEXT,
        "leases": WHOLE,
    }
)
ASKED = record(
    {
        "id": schema.ID,
        "epoch": WHOLE,
        "floor": WHOLE,
        "close_claims": FLAG,
        "reason": TEXT,
        "by": TEXT,
        "at": INSTANT,
        "expires_at": INSTANT,
    }
)
EPOCH = record(
    {
        "epoch": WHOLE,
        "claims_open": FLAG,
        "changed_at": maybe(INSTANT),
        "changed_by": TEXT,
        "reason": TEXT,
        "asked": maybe(ASKED),
        "price": record(
            {
                "attempts_lost": WHOLE,
                "workers_fenced": WHOLE,
                "workers": schema.rows(OBJECT),
                "effects_unknown": WHOLE,
                "amounts": schema.rows(OBJECT),
            }
        ),
    }
)
PART = record(
    {
        "name": TEXT,
        "verdict": schema.words(Verdict),
        "count": WHOLE,
        "more": FLAG,
        "rows": schema.rows(OBJECT),
    }
)
DRAIN = record(
    {
        "verdict": schema.words(Verdict),
        "at": INSTANT,
        "epoch": WHOLE,
        "claims_open": FLAG,
        "version": TEXT,
        "versions": schema.rows(record({"version": TEXT, "workers": WHOLE})),
        "parts": schema.rows(PART),
    }
)


class QueuesView(View):
    """`/queues`: those that anybody has said something about, or in which something is ready."""

    scopes: ClassVar[dict[str, str]] = {"GET": "ops"}
    answers = {"GET": {200: schema.listing(QUEUE)}}

    def get(self, request: Request) -> Response:
        caller = Caller.of(request)
        only = caller.token.queues if caller.token is not None else []
        return Response({"results": queues.listed(only=only)})


class QueueBody(Strict):
    """The body of PATCH /queues/{name}."""

    paused = Flag()
    reason = Reason()
    until = Instant(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "until" in attrs and not attrs["paused"]:
            raise serializers.ValidationError({"until": [_("Only a pause has an end.")]})
        return attrs


class QueueView(View):
    """`/queues/{name}`: look at one queue, pause it, resume it; resuming an open one changes nothing."""

    scopes: ClassVar[dict[str, str]] = {"GET": "ops", "PATCH": "ops"}
    bodies = {"PATCH": QueueBody}
    answers = {"GET": {200: QUEUE}, "PATCH": {200: QUEUE}}

    def get(self, request: Request, name: str) -> Response:
        return Response(queues.told(self._known(request, name)))

    def patch(self, request: Request, name: str) -> Response:
        caller, name, body = Caller.of(request), self._known(request, name), self.body(request)
        with caller.door():
            if body["paused"]:
                cluster.pause_queue(name, actor=caller.user, reason=body["reason"], until=body.get("until"))
            else:
                cluster.resume_queue(name, actor=caller.user, reason=body["reason"])
        return Response(queues.told(name))

    @staticmethod
    def _known(request: Request, name: str) -> str:
        if not handlers.QUEUE.fullmatch(name) or not Caller.of(request).may_use(name):
            raise NotFound
        return name


class WorkersView(View):
    """`/workers`: those heard of last, each with its state and its leases."""

    scopes: ClassVar[dict[str, str]] = {"GET": "ops"}
    cluster = True
    queries = {"GET": {"limit": paging.limit_parameter()}}
    answers = {"GET": {200: schema.listing(WORKER)}}

    def get(self, request: Request) -> Response:
        filters.unknown(request.query_params, self.queries["GET"])
        found = workers.listed(DEFAULT_DB_ALIAS, limit=paging.rows_of(request.query_params))
        return Response({"results": found})


class FenceBody(Strict):
    """The body of a fencing."""

    reason = Reason()


class FenceView(View):
    """`/workers/{id}/fence`: refuse one worker for good and end its leases."""

    scopes: ClassVar[dict[str, str]] = {"POST": "ops"}
    cluster = True
    bodies = {"POST": FenceBody}
    answers = {"POST": {200: record({"worker": TEXT, "leases_ended": WHOLE})}}

    def post(self, request: Request, worker_id: str) -> Response:
        caller, reason = Caller.of(request), self.body(request)["reason"]
        if "\0" in worker_id or not Worker.objects.filter(pk=worker_id).exists():
            raise NotFound
        with caller.door():
            ended = cluster.fence_worker(worker_id, actor=caller.user, reason=reason)
        return Response({"worker": worker_id, "leases_ended": ended})


class EpochBody(Strict):
    """The body of a raise of the epoch, `expected` being the epoch that was seen, or without it of claims."""

    reason = Reason()
    expected = Whole(least=1, most=2**53 - 2, required=False)
    floor = Whole(least=0, most=HIGHEST_FLOOR, required=False)
    claims_open = Flag(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "expected" in attrs and attrs.get("claims_open"):
            raise serializers.ValidationError({"claims_open": [_("Open claims after the raise, by itself.")]})
        if "expected" not in attrs and "floor" in attrs:
            raise serializers.ValidationError({"floor": [_("Only a raise, with expected, has a floor.")]})
        if "expected" not in attrs and "claims_open" not in attrs:
            raise serializers.ValidationError({"expected": [_("Give expected or claims_open.")]})
        return attrs


class EpochsView(View):
    """`/epochs`: the epoch, whether claims are open, the price of a raise now; and what changes them.

    A raise, with `expected`, asks a recent log-in; claims alone are opened and closed without `expected`.
    Where a raise takes two people it is only asked for (202), and waits in `asked` for `/epochs/approvals`.
    """

    scopes: ClassVar[dict[str, str]] = {"GET": "ops", "POST": "ops"}
    cluster = True
    bodies = {"POST": EpochBody}
    answers = {"GET": {200: EPOCH}, "POST": {200: EPOCH, 201: EPOCH, 202: EPOCH}}

    def get(self, request: Request) -> Response:
        return Response(_epoch())

    def post(self, request: Request) -> Response:
        caller, body = Caller.of(request), self.body(request)
        if "expected" not in body:
            claims = cluster.open_claims if body["claims_open"] else cluster.close_claims
            with caller.door():
                claims(actor=caller.user, reason=body["reason"])
            return Response(_epoch())
        closing = body.pop("claims_open", None) is False
        two = cluster.takes_two()
        verb = raising.propose if two else cluster.raise_epoch
        with caller.door(), _telling_the_current():
            verb(actor=caller.user, close_claims=closing, **body)
        return Response(_epoch(), status=status.HTTP_202_ACCEPTED if two else status.HTTP_201_CREATED)


class AnswerBody(Strict):
    """The body of a second person's word on a raise that was asked for."""

    proposal_id = Id()
    decision = Choice(["approve", "reject"])
    reason = Reason()


class RaiseApprovalsView(View):
    """`/epochs/approvals`: raise the epoch as another person asked for it, or decline that."""

    scopes: ClassVar[dict[str, str]] = {"POST": "ops"}
    cluster = True
    bodies = {"POST": AnswerBody}
    answers = {"POST": {200: EPOCH, 201: EPOCH}}

    def post(self, request: Request) -> Response:
        caller, body = Caller.of(request), self.body(request)
        raises = body["decision"] == "approve"
        verb = raising.approve if raises else raising.reject
        with caller.door(), _telling_the_current():
            verb(body["proposal_id"], actor=caller.user, reason=body["reason"])
        return Response(_epoch(), status=status.HTTP_201_CREATED if raises else status.HTTP_200_OK)


@contextmanager
def _telling_the_current() -> Iterator[None]:
    """Answer a raise of an epoch that is no more with the one that is."""
    try:
        yield
    except Refused as error:
        if error.code != "EPOCH_MOVED":
            raise
        raise refused(error, current=_epoch()) from None


def _epoch() -> dict[str, Any]:
    row = Scheduler.objects.get()
    shown = ("epoch", "claims_open", "changed_at", "changed_by", "reason")
    asked = raising.open_now(clock(), row.epoch)
    price = exposure.of_all(DEFAULT_DB_ALIAS).document()
    told = {"asked": raising.told(asked) if asked else None, "price": price}
    return {name: getattr(row, name) for name in shown} | told


class DrainView(View):
    """`/drain`: whether the cluster may be stopped, and why not."""

    scopes: ClassVar[dict[str, str]] = {"GET": "ops"}
    cluster = True
    queries = {"GET": {"version": TEXT}}
    answers = {"GET": {200: DRAIN}}

    def get(self, request: Request) -> Response:
        filters.unknown(request.query_params, self.queries["GET"])
        return Response(drain.look(version=request.query_params.get("version", "")).document())
