"""Cases over HTTP: what waits for a person, and what a person does there; the console's own functions."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

import django_filters
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import narrowing
from jobs.api import filters, paging, schema
from jobs.api.auth import Caller
from jobs.api.fields import (
    Anything,
    Choice,
    Flag,
    Id,
    Instant,
    Object,
    Reason,
    Strict,
    Text,
    Whole,
    parse_uuid,
)
from jobs.api.paging import Paging
from jobs.api.problems import refused
from jobs.api.schema import FLAG, ID, INSTANT, OBJECT, TEXT, WHOLE, maybe, record
from jobs.api.view import View
from jobs.ledger.clock import clock
from jobs.models import Case, Proposal
from jobs.models.case import CaseKind, Verdict
from jobs.operations import approvals, cases, casework, docket, rulings
from jobs.operations.casework import LONGEST_COMMENT, LONGEST_TAKE, LONGEST_WHY
from jobs.outcomes import Refused
from jobs.status import EffectStatus, JobStatus

ENTRY: dict[str, schema.Schema] = {
    "id": ID,
    "kind": schema.words(CaseKind),
    "opened_at": INSTANT,
    "sla_due_at": maybe(INSTANT),
    "effect_kind": TEXT,
    "label": TEXT,
    "amount": maybe(TEXT),
    "currency": TEXT,
    "owner": TEXT,
    "parked_until": maybe(INSTANT),
    "parked_why": TEXT,
    "asked": maybe(
        record({"verdict": schema.words(Verdict), "by": TEXT, "at": INSTANT, "expires_at": maybe(INSTANT)})
    ),
    "job_id": ID,
    "effect_id": TEXT,
    "closed_at": maybe(INSTANT),
    "closed_as": TEXT,
    "version": WHOLE,
}
OFFER = record(
    {
        "verdict": schema.words(Verdict),
        "allowed": FLAG,
        "why": TEXT,
        "why_code": TEXT,
        "opens_at": maybe(INSTANT),
        "takes_second": FLAG,
        "consequence": TEXT,
        "guards": schema.rows(
            record({"code": TEXT, "met": FLAG, "at": maybe(INSTANT), "text": TEXT, "why": TEXT})
        ),
    }
)
DOCUMENT: dict[str, schema.Schema] = {
    **ENTRY,
    "snapshot": TEXT,
    "now": INSTANT,
    "job_status": schema.words(JobStatus),
    "effect": OBJECT,
    "kind_known": FLAG,
    "sender": OBJECT,
    "in_flight_until": maybe(INSTANT),
    "settle_by": maybe(INSTANT),
    "proposal": maybe(OBJECT),
    "evidence": schema.rows(OBJECT),
    "rulings": schema.rows(OBJECT),
    "comments": schema.rows(OBJECT),
    "offers": schema.rows(OFFER),
}


class CaseFilter(django_filters.FilterSet):
    """The filters of GET /cases."""

    state = filters.OneOf(["open", "closed"], method="by_state")
    kind = filters.OneOf([kind.value for kind in CaseKind])
    effect_kind = filters.Exactly("effect_kind")
    owner = filters.OneOf(["me", "nobody"], method="by_owner")
    parked = filters.OneOf(["yes", "no"], method="by_parked")
    sla = filters.OneOf(["breached"], method="by_sla")
    waiting = filters.OneOf([approvals.ME, approvals.ANYBODY], method="by_waiting")
    job = filters.Uuid("job_id")

    class Meta:
        model = Case
        fields: list[str] = []

    def by_state(self, found: Any, _name: str, value: str) -> Any:
        return found.filter(closed_at__isnull=value == "open")

    def by_owner(self, found: Any, _name: str, value: str) -> Any:
        return found.filter(narrowing.case_of(value, self.request.user.get_username(), clock()))

    def by_parked(self, found: Any, _name: str, value: str) -> Any:
        return found.filter(narrowing.case_parked(value, clock()))

    def by_sla(self, found: Any, _name: str, _value: str) -> Any:
        return found.filter(narrowing.case_late(clock()), closed_at__isnull=True)

    def by_waiting(self, found: Any, _name: str, value: str) -> Any:
        return found.filter(approvals.narrowed(value, self.request.user, clock()))


class TakeBody(Strict):
    """The body of a take, or with `release` of giving the case back."""

    version = Whole(least=0)
    minutes = Whole(least=1, most=LONGEST_TAKE, required=False)
    release = Flag(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("release") and "minutes" in attrs:
            raise serializers.ValidationError({"minutes": [_("Give either minutes or release.")]})
        return attrs


class ParkBody(Strict):
    """The body of a park; without `until` the case comes back."""

    version = Whole(least=0)
    until = Instant(required=False)
    why = Text(required=False, most=LONGEST_WHY)


class CommentBody(Strict):
    """The body of a comment."""

    version = Whole(least=0)
    text = Text(least=1, most=LONGEST_COMMENT)


class InquireBody(Strict):
    """The body of an inquiry: an empty object."""


class RulingBody(Strict):
    """The body of a ruling, on the version and snapshot that were seen."""

    version = Whole(least=0)
    snapshot = Text(least=64, most=64)
    verdict = Choice(Verdict)
    reason_code = Text(least=1, most=40)
    reason = Reason()
    reference = Text(required=False, most=rulings.LONGEST_REFERENCE)
    response = Anything(required=False)
    compensate = Flag(required=False)
    attested = Flag(required=False)
    arguments = Object(required=False)
    effects = Choice(["repeat_effects", "keep_effects"], required=False)


class ApprovalBody(Strict):
    """The body of a second person's word on a proposal, on the snapshot that was seen."""

    proposal_id = Id()
    decision = Choice(["approve", "reject"])
    snapshot = Text(least=64, most=64)
    reason = Reason()
    reason_code = Text(required=False, least=1, most=40)


class CaseBase(View):
    """What all addresses of cases have in common."""

    @staticmethod
    def visible(caller: Caller) -> Any:
        """Return the cases that exist as far as this caller is concerned."""
        queues = caller.token.queues if caller.token is not None else []
        return Case.objects.filter(job__queue__in=queues) if queues else Case.objects.all()

    def case(self, caller: Caller, case_id: str) -> Case:
        """Return a case that exists for this caller; raises NotFound."""
        key = parse_uuid(case_id)
        found: Case | None = self.visible(caller).filter(pk=key).first() if key else None
        if found is None:
            raise NotFound
        return found


def document(case_id: uuid.UUID, caller: Caller) -> dict[str, Any]:
    """Return all that is known of a case, with what this caller may rule now."""
    view = cases.look(case_id)
    return docket.document(view, cases.offers(view, caller.user))


class CasesView(CaseBase):
    """`/cases`: what waits for a person, and what did."""

    scopes: ClassVar[dict[str, str]] = {"GET": "cases:act"}
    queries = {"GET": paging.parameters(filters.described(CaseFilter), counts=False)}
    answers = {"GET": {200: paging.answer(record(ENTRY))}}

    def get(self, request: Request) -> Response:
        query = request.query_params
        found = filters.narrow(
            approvals.with_questions(self.visible(Caller.of(request))),
            query,
            besides=paging.ROWS,
            by=CaseFilter,
            request=request,
        )
        page = Paging.of(query, "cases").small(found)
        now = clock()
        return Response(
            page.document(request.path, lambda case: docket.entry(case, now, approvals.asked_of(case, now)))
        )


class CaseView(CaseBase):
    """`/cases/{id}`: all that is known of one, with the version and snapshot to rule on."""

    scopes: ClassVar[dict[str, str]] = {"GET": "cases:act"}
    answers = {"GET": {200: schema.ref("Case")}}

    def get(self, request: Request, case_id: str) -> Response:
        caller = Caller.of(request)
        return Response(document(self.case(caller, case_id).pk, caller))


class CaseAct(CaseBase):
    """One thing that a person does to a case; the answer is the case afterwards."""

    scopes: ClassVar[dict[str, str]] = {"POST": "cases:act"}
    answers: ClassVar[dict[str, dict[int, schema.Schema]]] = {"POST": {200: schema.ref("Case")}}

    def post(self, request: Request, case_id: str) -> Response:
        caller = Caller.of(request)
        case = self.case(caller, case_id)
        body = self.body(request)
        try:
            with caller.door():
                told = self.act(case.pk, caller.user, body)
        except Refused as error:
            if error.code != "MOVED":
                raise
            raise refused(error, current=document(case.pk, caller)) from None
        return Response(told | document(case.pk, caller))

    def act(self, case_id: uuid.UUID, user: Any, body: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


class TakeView(CaseAct):
    """`/cases/{id}/take`: make it one's own for some minutes, or give it back."""

    bodies = {"POST": TakeBody}

    def act(self, case_id: uuid.UUID, user: Any, body: dict[str, Any]) -> dict[str, Any]:
        seen = body["version"]
        if body.get("release"):
            casework.give_back(case_id, actor=user, seen_version=seen)
        else:
            casework.take(case_id, actor=user, minutes=body.get("minutes", 30), seen_version=seen)
        return {}


class ParkView(CaseAct):
    """`/cases/{id}/park`: put it aside until a time, or bring it back."""

    bodies = {"POST": ParkBody}

    def act(self, case_id: uuid.UUID, user: Any, body: dict[str, Any]) -> dict[str, Any]:
        until, why = body.get("until"), body.get("why", "")
        casework.park(case_id, until, actor=user, why=why, seen_version=body["version"])
        return {}


class CommentView(CaseAct):
    """`/cases/{id}/comment`: write something beside it."""

    bodies = {"POST": CommentBody}

    def act(self, case_id: uuid.UUID, user: Any, body: dict[str, Any]) -> dict[str, Any]:
        casework.comment(case_id, body["text"], actor=user, seen_version=body["version"])
        return {}


class InquireView(CaseAct):
    """`/cases/{id}/inquire`: ask the provider now what became of the effect."""

    bodies = {"POST": InquireBody}
    answers = {
        "POST": {200: {"allOf": [schema.ref("Case"), record({"settled": maybe(schema.words(EffectStatus))})]}}
    }

    def act(self, case_id: uuid.UUID, user: Any, body: dict[str, Any]) -> dict[str, Any]:
        return {"settled": casework.inquire_now(case_id, actor=user)}


RULED = record({"outcome": schema.words(["ruled", "proposed", "rejected"]), "audit_seq": maybe(WHOLE)})


class RulingsView(CaseAct):
    """`/cases/{id}/rulings`: decide it; some decisions then wait for a second person."""

    bodies = {"POST": RulingBody}
    answers = {"POST": {200: {"allOf": [schema.ref("Case"), RULED]}}}

    def act(self, case_id: uuid.UUID, user: Any, body: dict[str, Any]) -> dict[str, Any]:
        given = {**body, "seen_version": body["version"]}
        del given["version"]
        done = rulings.rule(case_id, given.pop("verdict"), actor=user, **given)
        outcome = "ruled" if isinstance(done, rulings.Ruled) else "proposed"
        return {"outcome": outcome, "audit_seq": done.audit_seq}


class ApprovalsView(CaseAct):
    """`/cases/{id}/approvals`: confirm as a second person what another asked for, or decline it."""

    bodies = {"POST": ApprovalBody}
    answers = {"POST": {200: {"allOf": [schema.ref("Case"), RULED]}}}

    def act(self, case_id: uuid.UUID, user: Any, body: dict[str, Any]) -> dict[str, Any]:
        proposal = body["proposal_id"]
        if not Proposal.objects.filter(pk=proposal, case=case_id).exists():
            raise Refused("PROPOSAL_NOT_FOUND", proposal_id=str(proposal))
        given = {name: body[name] for name in ("snapshot", "reason")}
        if body["decision"] == "reject":
            rulings.reject(proposal, actor=user, **given)
            return {"outcome": "rejected", "audit_seq": None}
        if "reason_code" in body:
            given["reason_code"] = body["reason_code"]
        return {"outcome": "ruled", "audit_seq": rulings.approve(proposal, actor=user, **given).audit_seq}
