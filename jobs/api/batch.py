"""Many jobs in one request and one transaction: all or none, each answered in its place."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import transaction
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api import schema
from jobs.api.auth import Caller
from jobs.api.enqueue import EnqueueBody, Known, Wish, conflict_of, key_of
from jobs.api.fields import Several, Strict
from jobs.api.problems import Problem
from jobs.api.view import View
from jobs.models import Job
from jobs.outcomes import Enqueued, InvalidJob, KeyConflict
from jobs.verbs.enqueue import BATCH

SHOWN = 20
"""Bad items told of in one answer."""
ITEM = schema.record(
    {"result": schema.words(["created", "existing", "conflict"]), "id": schema.maybe(schema.ID)}
)
ITEM["properties"] |= {"job_status": schema.TEXT, "differing": schema.rows(schema.TEXT)}


class BatchBody(Strict):
    """The body of POST /jobs/batch."""

    jobs = Several(EnqueueBody(), most=BATCH)


class BatchView(View):
    """`/jobs/batch`: enqueue up to a thousand jobs."""

    scopes: ClassVar[dict[str, str]] = {"POST": "jobs:enqueue"}
    bodies = {"POST": BatchBody}
    conditions = {"POST": ("Idempotency-Key", "traceparent")}
    answers = {"POST": {200: schema.listing(ITEM, created=schema.WHOLE)}}
    body_limit = "BATCH_BYTES"
    extra_depth = 3

    def post(self, request: Request) -> Response:
        caller = Caller.of(request)
        header, trace = request.META.get("HTTP_IDEMPOTENCY_KEY"), self.trace_of(request)
        wishes = _wishes(caller, self.body(request)["jobs"], header, trace)
        with transaction.atomic(using=Job.objects.db):
            answers = _enqueue(wishes)
            results = [_result(caller, *pair) for pair in zip(wishes, answers, strict=True)]
        created = sum(result["result"] == "created" for result in results)
        return Response({"results": results, "created": created})


def _wishes(caller: Caller, given: list[dict[str, Any]], header: str | None, trace: str) -> list[Wish]:
    """Judge every item; an item's Idempotency-Key is the request's, with the item's place."""
    known, wishes, errors = Known(), [], []
    alike: dict[tuple[Any, ...], Wish] = {}
    for index, item in enumerate(given):
        own = header is None or "unique_key" in item
        try:
            said = item if own else item | key_of(caller, f"{header}#{index}", item)
            arguments, unique_key = said.pop("arguments", {}), said.pop("unique_key", None)
            # All that is left to judge. The fields gave each member one type: what is equal is alike.
            shape = tuple(said.items())
            wish = alike.get(shape)
            if wish is None:
                wish = Wish.of(caller, said, {"traceparent": trace}, known, unique_key)
                if known(wish.kind):  # and not only for the sake of this item's key
                    alike[shape] = wish
            wishes.append(Wish(wish.kind, arguments, wish.options, unique_key))
        except Problem as problem:
            if problem.problem != "invalid-body":
                raise
            errors += [{**e, "pointer": f"/jobs/{index}{e['pointer']}"} for e in problem.errors]
        if len(errors) >= SHOWN:
            break
    if errors:
        raise Problem("invalid-body", errors=errors)
    return wishes


def _enqueue(wishes: list[Wish]) -> list[Enqueued | KeyConflict]:
    try:
        calls = [(wish.kind, wish.arguments, wish.options) for wish in wishes]
        return Job.objects.enqueue_many(calls, unique_keys=[wish.unique_key for wish in wishes])
    except InvalidJob as error:
        raise _placed(wishes, error) from None


def _placed(wishes: list[Wish], error: InvalidJob) -> Problem:
    """Return the problem with the place of the first item that is refused in the same words."""
    from jobs import admission

    for index, wish in enumerate(wishes):
        try:
            admission.rows([(wish.kind, wish.arguments, wish.options)], [wish.unique_key])
        except InvalidJob as same:
            pointer = f"/jobs/{index}/{same.field}"
            return Problem("invalid-body", errors=[{"pointer": pointer, "detail": same.problem}])
    return Problem("invalid-body", errors=[{"pointer": "/jobs", "detail": _("refused: %s") % error}])


def _result(caller: Caller, wish: Wish, answer: Enqueued | KeyConflict) -> dict[str, Any]:
    if isinstance(answer, KeyConflict):
        held = conflict_of(caller, answer, wish)
        return {"result": "conflict", "id": held.pop("job_id", None), **held}
    if not answer.created and not caller.jobs().filter(pk=answer.job_id).exists():
        return {"result": "conflict", "id": None}
    return {"result": "created" if answer.created else "existing", "id": str(answer.job_id)}
