"""Mass actions over HTTP: prepare a plan, look at it and its rows, execute it once, abort it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import QueryDict
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers, status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api import filters, paging, schema
from jobs.api.auth import Caller
from jobs.api.fields import Choice, Id, Object, Reason, Several, Strict, Whole, parse_uuid
from jobs.api.problems import Problem
from jobs.api.schema import FLAG, ID, INSTANT, OBJECT, TEXT, WHOLE, Schema, maybe, record
from jobs.api.strictjson import pointer
from jobs.api.view import View
from jobs.ledger.clock import clock
from jobs.models import Plan, PlanRow
from jobs.models.plan import PlanAction, PlanState, RowOutcome
from jobs.operations import planrows, plans
from jobs.permissions import BY_ACTION
from jobs.sentences import sentence

PICKED = 1000
"""Jobs that one plan may name by id."""
PLAN: dict[str, Schema] = {
    "id": ID,
    "action": schema.words(PlanAction),
    "reason": TEXT,
    "state": schema.words(PlanState),
    "filters": schema.rows(record({"name": TEXT, "value": TEXT})),
    "total": WHOLE,
    "left_out": WHOLE,
    "done": WHOLE,
    "skipped": WHOLE,
    "statuses": OBJECT,
    "kinds": OBJECT,
    "queues": OBJECT,
    "holds": OBJECT,
    "oldest": INSTANT,
    "newest": INSTANT,
    "amounts": OBJECT,
    "largest": schema.rows(record({"job_id": ID, "label": TEXT, "version": WHOLE, "amounts": OBJECT})),
    "takes_typing": FLAG,
    "created_at": INSTANT,
    "created_by": TEXT,
    "expires_at": INSTANT,
    "started_at": maybe(INSTANT),
    "executed_by": TEXT,
    "job_id": maybe(ID),
    "ended_at": maybe(INSTANT),
    "ended_by": TEXT,
    "ended_why": TEXT,
}
ROW = record(
    {
        "job_id": ID,
        "seen_version": WHOLE,
        "outcome": schema.words(RowOutcome),
        "code": TEXT,
        "why": TEXT,
        "requested": FLAG,
        "at": maybe(INSTANT),
    }
)
EITHER = tuple(dict.fromkeys(BY_ACTION.values()))
"""Any of these lets in; which one it takes depends on the plan's action."""


class Filters(Object):
    """The filters of GET /jobs as members: a list where any of several will do."""

    expected = _("An object of filters is needed here.")
    TYPES: ClassVar[dict[str, type]] = {"array": list, "integer": int, "string": str}
    WRONG: ClassVar[dict[type, Any]] = {
        list: _("A list of texts is needed here."),
        int: _("A whole number is needed here."),
        str: _("Text is needed here."),
    }

    def to_internal_value(self, data: Any) -> QueryDict:
        known = filters.described(filters.JobFilter)
        query = QueryDict(mutable=True)
        given: dict[str, Any] = super().to_internal_value(data)
        for name, value in given.items():
            # A name that is not known is told of by the filters themselves.
            wanted: type = self.TYPES[known[name]["type"]] if name in known else type(value)
            values: list[Any] = value if isinstance(value, list) else [str(value)]
            if type(value) is not wanted or not values or not all(isinstance(v, str) for v in values):
                raise serializers.ValidationError({name: [self.WRONG.get(wanted, self.expected)]})
            query.setlist(name, values)
        return query

    def described(self) -> Schema:
        return OBJECT | {"properties": filters.described(filters.JobFilter), "additionalProperties": False}


class PlanBody(Strict):
    """The body of a preparation: `filters`, or `ids`, or both, which narrows further."""

    action = Choice(PlanAction)
    reason = Reason()
    filters = Filters(required=False)
    ids = Several(Id(), most=PICKED, required=False)


class ExecuteBody(Strict):
    """The body of an execution; `typed` is the number of jobs, asked for above twenty."""

    typed = Whole(least=0, required=False)


class AbortBody(Strict):
    """The body of an abort: an empty object."""


class PlansView(View):
    """`/bulk-plans`: freeze which jobs an action is for; nothing happens to them yet."""

    scopes = {"POST": EITHER}
    bodies = {"POST": PlanBody}
    answers = {"POST": {201: schema.ref("Plan")}}

    def post(self, request: Request) -> Response:
        caller, given = Caller.of(request), self.body(request)
        action = PlanAction(given["action"])
        _need_scope(caller, action)
        query: QueryDict = given.get("filters") or QueryDict()
        words = [(name, value) for name, values in query.lists() for value in values]
        with caller.door():
            plan = plans.prepare(
                action,
                _narrowed(caller, query),
                actor=caller.user,
                reason=given["reason"],
                filters=words,
                ids=given.get("ids", ()),
            )
        headers = {"Location": f"{request.path}/{plan.id}"}
        return Response(told(plan), status=status.HTTP_201_CREATED, headers=headers)


class PlanView(View):
    """`/bulk-plans/{id}`: one plan, with how far it is."""

    scopes = {"GET": "jobs:read"}
    answers = {"GET": {200: schema.ref("Plan")}}

    def get(self, request: Request, plan_id: str) -> Response:
        return Response(told(_find(Caller.of(request), plan_id)))


class RowsView(View):
    """`/bulk-plans/{id}/items`: its jobs in the order they are gone through, with what became of each."""

    scopes = {"GET": "jobs:read"}
    queries = {
        "GET": {
            "outcome": schema.words(RowOutcome),
            "limit": paging.limit_parameter(),
            "after": WHOLE | {"minimum": 0, "maximum": 2**53 - 1},
        }
    }
    answers = {"GET": {200: paging.answer(ROW)}}

    def get(self, request: Request, plan_id: str) -> Response:
        query = request.query_params
        filters.unknown(query, self.queries["GET"])
        limit, after = paging.rows_of(query), query.get("after", "0")
        if not (after.isascii() and after.isdigit() and len(after) <= 16 and int(after) < 2**53):
            raise paging.wrong("after", str(_("not a place in this list; begin again without one")))
        plan, outcome = _find(Caller.of(request), plan_id), query.get("outcome", "")
        if "outcome" in query and outcome not in list(RowOutcome):
            raise paging.wrong("outcome", str(_("one of %s is needed")) % ", ".join(RowOutcome))
        page = planrows.after(plan, int(after), outcome=outcome, most=limit + 1)
        following = query.copy()
        following["after"] = str(page[limit - 1].id) if len(page) > limit else ""
        more = f"{request.path}?{following.urlencode()}" if len(page) > limit else None
        return Response({"results": [_row(row) for row in page[:limit]], "next": more})


class ExecuteView(View):
    """`/bulk-plans/{id}/execute`: begin it, once; a job of this runtime goes through its rows."""

    scopes = {"POST": EITHER}
    bodies = {"POST": ExecuteBody}
    answers = {"POST": {202: schema.ref("Plan")}}

    def post(self, request: Request, plan_id: str) -> Response:
        caller = Caller.of(request)
        plan = _find(caller, plan_id, to_act=True)
        typed = self.body(request).get("typed")
        with caller.door():
            plan = plans.begin(plan.id, actor=caller.user, typed=typed, token=caller.token)
        return Response(told(plan), status=status.HTTP_202_ACCEPTED)


class AbortView(View):
    """`/bulk-plans/{id}/abort`: touch no further row of it."""

    scopes = {"POST": EITHER}
    bodies = {"POST": AbortBody}
    answers = {"POST": {200: schema.ref("Plan")}}

    def post(self, request: Request, plan_id: str) -> Response:
        caller = Caller.of(request)
        plan = _find(caller, plan_id, to_act=True)
        self.body(request)
        with caller.door():
            return Response(told(plans.abort(plan.id, actor=caller.user)))


def told(plan: Plan) -> dict[str, Any]:
    """Return a plan as it is answered."""
    own = {name: getattr(plan, name) for name in PLAN if hasattr(plan, name)}
    return own | {
        "state": plan.standing(clock()),
        "filters": [{"name": name, "value": value} for name, value in plan.filters],
        "takes_typing": plans.needs_typing(plan),
        "queues": {},
        **plan.summary,
    }


def _row(row: PlanRow) -> dict[str, Any]:
    shown = ("job_id", "seen_version", "outcome", "code", "requested", "at")
    why = sentence(row.code, row.params) if row.code else ""
    return {name: getattr(row, name) for name in shown} | {"why": why}


def _need_scope(caller: Caller, action: str) -> None:
    if missing := caller.lacks(BY_ACTION[action]):
        raise Problem("forbidden", missing)


def _find(caller: Caller, plan_id: str, *, to_act: bool = False) -> Plan:
    """Return a plan that exists for this caller: with no job outside the queues that he is limited to."""
    key = parse_uuid(plan_id)
    plan = Plan.objects.filter(pk=key).first() if key else None
    if plan is None or not all(caller.may_use(queue) for queue in plan.queues):
        raise NotFound
    if to_act:
        _need_scope(caller, plan.action)
    return plan


def _narrowed(caller: Caller, query: QueryDict) -> Any:
    """Narrow the caller's jobs; what is wrong is told by its place in the body."""
    try:
        return filters.narrow(caller.jobs(), query)
    except Problem as problem:
        raise Problem("invalid-body", errors=_by_place(problem.errors)) from None


def _by_place(errors: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    return [{"pointer": pointer("/filters", e["parameter"]), "detail": e["detail"]} for e in errors]
