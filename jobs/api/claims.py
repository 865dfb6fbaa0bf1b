"""`POST /claims`: work for a remote worker, waited for if need be. A claim registers its worker."""

from __future__ import annotations

import itertools
import json
import threading
import time
import uuid
from datetime import timedelta
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import NotAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import handlers, measures, ruled
from jobs.api import schema
from jobs.api.auth import Caller
from jobs.api.fields import Id, Seconds, Several, Strict, Text, Whole
from jobs.api.presented import LARGEST, LEASE, MOST, NAME_CHARACTERS, Name, WorkerView, shown, suffix
from jobs.api.problems import Problem
from jobs.api.room import ROOM
from jobs.api.schema import INSTANT, TEXT, WHOLE, record
from jobs.api.waiting import has_gone, let_go
from jobs.handlers import DRILL, PLAN
from jobs.ledger import worker as worker_rows
from jobs.ledger.clock import clock
from jobs.ledger.probe import held_by, probe
from jobs.ledger.session import Session, transact
from jobs.models import ApiToken, Job, Worker
from jobs.outcomes import Ending, Lease
from jobs.runtime import KINDS_PER_CLAIM, DurableJobRuntime
from jobs.verbs.holder import LONGEST_LEASE
from jobs.vocabulary import JOB
from jobs.worker.duties import Duties
from jobs.worker.held import boottime

LONGEST_WAIT = 30
QUEUES = 50
BEAT_GRAIN = timedelta(seconds=10)
"""A worker's row is written no oftener."""
TURNED_AWAY_SECONDS = 5


class WorkerBody(Strict):
    """Who claims: an id that is new at each start, best `host:pid:uuid`."""

    id = Name(most=NAME_CHARACTERS)
    version = Text(most=40, required=False)
    concurrency = Whole(least=1, most=LARGEST, required=False)


class ClaimBody(Strict):
    """The body of a claim."""

    worker = WorkerBody()
    queues = Several(Name(most=100), most=QUEUES)
    kinds = Several(Name(most=120), most=KINDS_PER_CLAIM)
    limit = Whole(least=1, most=MOST, required=False)
    wait = Seconds(most=LONGEST_WAIT, required=False)
    holding = Several(Id(), least=0, most=10_000, required=False)

    def validate_kinds(self, value: list[str]) -> list[str]:
        if own := sorted({DRILL, PLAN} & set(value)):
            raise serializers.ValidationError(_("%s is run by the product's own workers only.") % own[0])
        return value


CLAIMED = record(
    {
        "lease": LEASE,
        "kind": TEXT,
        "queue": TEXT,
        "label": TEXT,
        "priority": WHOLE,
        "input": schema.OBJECT,
        "ttl_seconds": {"type": "number"},
        "lease_expires_at": INSTANT,
        "deadline_at": schema.maybe(INSTANT),
        "timeout": {"type": ["number", "null"]},
        "attempt": WHOLE,
        "max_attempts": WHOLE,
        "ruled": {"type": ["object", "null"]},
        "traceparent": TEXT,
    }
)
ANSWER = record(
    {"leases": schema.rows(CLAIMED), "retry_after": schema.maybe(WHOLE), "waited": {"type": "number"}}
)


class ClaimsView(WorkerView):
    """`/claims`: up to `limit` jobs, or an empty list after `wait` seconds."""

    bodies = {"POST": ClaimBody}
    conditions = {"POST": ("traceparent",)}
    answers = {"POST": {200: ANSWER}}

    def post(self, request: Request) -> Response:
        caller, body = Caller.of(request), self.body(request)
        for queue in body["queues"]:
            if not caller.may_use(queue):
                raise Problem("forbidden", _("The token is not for the queue %s.") % queue)
        claim = Claim(caller, body, self.trace_of(request))
        claim.register()
        if "holding" in body:
            claim.give_back({attempt.hex for attempt in body["holding"]})
        wait = body.get("wait", 0)
        leases, turned_away = _wait_for(claim, request, wait) if wait else (claim.take(), False)
        answer = Response(
            {
                "leases": [_told(lease) for lease in leases],
                "retry_after": TURNED_AWAY_SECONDS if turned_away else None,
                "waited": claim.waited,
            }
        )
        if turned_away:
            answer["Retry-After"] = str(TURNED_AWAY_SECONDS)
        return answer


def _wait_for(claim: Claim, request: Request, wait: float) -> tuple[list[Lease], bool]:
    """Claim now or when something has come; also returns whether there was no room to wait in."""
    end, gone = time.monotonic() + wait, False
    token = claim.caller.token.pk if claim.caller.token else None
    with ROOM.seat(claim.ask, claim.worker_id, token) as seat:
        leases = claim.take()
        if seat is None:
            return leases, not leases
        while not leases and not ROOM.is_closing():
            let_go()
            if not seat.wait(end - time.monotonic()) or ROOM.is_closing():
                break
            if gone := has_gone(request):
                break
            if not claim.is_still_wanted():
                break
            leases = claim.take(only_if_ready=True)
    if len(leases) >= claim.limit or gone:
        ROOM.pass_on(claim.ask)  # there may be more, or all of it still
    return leases, False


class Claim:
    """One request for work."""

    def __init__(self, caller: Caller, body: dict[str, Any], trace: str) -> None:
        self.caller, self.trace = caller, trace
        self.worker = body["worker"]
        self.worker_id = f"{self.worker['id']}{suffix(caller)}"
        self.queues, self.kinds = list(dict.fromkeys(body["queues"])), list(dict.fromkeys(body["kinds"]))
        self.limit = body.get("limit", 1)
        self.runtime: DurableJobRuntime = Job.objects.runtime
        self.waited = 0.0
        """Seconds from the request to its last claim: no lease that it gave began before."""
        self._began = time.monotonic()

    @property
    def ask(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(self.queues), tuple(self.kinds)

    def register(self) -> None:
        """Keep that this worker is there; raises Problem for one that was fenced or has stopped."""
        row = Worker.objects.filter(pk=self.worker_id).first()
        if row is not None and (row.fenced_at or row.stopped_at):
            raise Problem("worker-ended")
        if (
            row is not None
            and clock() - row.beat_at < BEAT_GRAIN
            and (row.queues, row.kinds) == (self.queues, self.kinds)
        ):
            return
        if row is None:
            Job.objects.know_timeline(actor=f"worker {self.worker_id}"[:150])
        values = {
            "id": self.worker_id,
            "host": self.worker["id"].partition(":")[0][:100],
            "version": self.worker.get("version", ""),
            "queues": self.queues,
            "kinds": self.kinds,
            "concurrency": self.worker.get("concurrency", self.limit),
            "epoch": self.runtime.current_epoch(),
        }
        counts = measures.drain()

        def work(session: Session) -> None:
            worker_rows.hear(session, **values)
            worker_rows.add_minutes(session, counts)

        try:
            transact(work, using=self.runtime.using, vocabulary=JOB, durable=False, fenced=False)
        except BaseException:
            measures.put_back(counts)
            raise

    def take(self, *, only_if_ready: bool = False) -> list[Lease]:
        """Do everybody's duties if they are due, then claim."""
        HOUSEKEEPING.turn(self.runtime)
        if only_if_ready:
            session = Session(self.runtime.using, JOB, None)
            if not probe(session, worker=self.worker_id, queues=self.queues, kinds=self.kinds).ready:
                return []
        self.waited = time.monotonic() - self._began
        return self.runtime.claim(
            worker_id=self.worker_id,
            queues=_rotated(self.queues),
            kinds=self.kinds,
            max_claims=self.limit,
            ttl=LONGEST_LEASE,
            traceparent=self.trace,
        )

    def give_back(self, holding: set[str]) -> None:
        """Release what this worker should hold and does not: the answer to that claim was lost."""
        held = held_by(Session(self.runtime.using, JOB, None), self.worker_id)
        message = "the answer to its claim was lost"
        self.runtime.end(
            [
                Ending.release(lease, error_code="WORKER_LEASE_RELEASED", message=message)
                for lease in held
                if lease.attempt_id not in holding
            ]
        )

    def is_still_wanted(self) -> bool:
        """Whether there is somebody to claim for, after a wait; raises Problem where he may not any more."""
        token = self.caller.token
        if token is not None:
            live = ApiToken.objects.find_by_digest(token.digest)
            if live is None or Caller(live.user, live).lacks("worker"):
                raise NotAuthenticated(_("The token is unknown, has expired or was revoked."))
        row = Worker.objects.filter(pk=self.worker_id).first()
        if row is None or row.fenced_at or row.stopped_at:
            raise Problem("worker-ended")
        return row.stopping_at is None


_turns = itertools.count()


def _rotated(queues: list[str]) -> list[str]:
    """Begin one queue further at each claim, so that a full first one does not starve the others."""
    start = next(_turns) % len(queues)
    return [*queues[start:], *queues[:start]]


def _told(lease: Lease) -> dict[str, Any]:
    word = None
    if lease.generation > lease.attempt_count:
        word = ruled.result(lease, using=DEFAULT_DB_ALIAS)
    handler = handlers.find(lease.kind)
    return {
        "lease": shown(lease),
        "kind": lease.kind,
        "queue": lease.queue,
        "label": lease.label,
        "priority": lease.priority,
        "input": json.loads(lease.input),
        "ttl_seconds": _seconds(lease),
        "lease_expires_at": lease.lease_expires_at,
        "deadline_at": lease.deadline_at,
        "timeout": handler.timeout if handler else None,
        "attempt": lease.attempts_used,
        "max_attempts": lease.max_attempts,
        "ruled": None if word is None else {"result": word.value},
        "traceparent": lease.traceparent,
    }


def _seconds(lease: Lease) -> float:
    """Return how long the lease is, by the database's clock: less than the kind's where a deadline cuts."""
    if lease.lease_expires_at is None or lease.started_at is None:
        return float(lease.ttl_seconds)
    return min(float(lease.ttl_seconds), (lease.lease_expires_at - lease.started_at).total_seconds())


class Housekeeping:
    """The duties of every worker, done here on behalf of those that cannot: once a second at most."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._next = 0.0
        self._duties: Duties | None = None

    def turn(self, runtime: DurableJobRuntime) -> None:
        """Take back what lapsed and promote what came due, unless somebody has just done so."""
        if time.monotonic() < self._next or not self._turn.acquire(blocking=False):
            return
        try:
            self._next = time.monotonic() + 1.0
            if self._duties is None:
                self._duties = Duties(runtime, worker_id=f"web:{uuid.uuid4().hex}", clock=boottime)
            duties = self._duties
            found = probe(Session(runtime.using, JOB, None), worker="", queues=[], kinds=[])
            if not found.expired:
                duties.all_alive()
            if found.expired or found.past_deadline:
                duties.attempt("recover", duties.recover, None)
            if found.due_in is not None and found.due_in <= 0:
                duties.attempt("promote", duties.promote, None)
            duties.attempt("prune", duties.prune, None)
        finally:
            self._turn.release()


HOUSEKEEPING = Housekeeping()
