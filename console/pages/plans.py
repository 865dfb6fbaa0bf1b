"""Mass actions: a plan for a filter or for picked jobs, its confirmation, and how far it is."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console import history, planforms, wording
from console.jobfilters import JobFilter
from console.pages.act import CODES, Act, Effect, Sent
from console.pages.base import Page
from jobs import errors
from jobs.models import Job, Plan, PlanRow
from jobs.models.plan import PlanAction, PlanState, RowOutcome
from jobs.money import money
from jobs.operations import plancounts, plans
from jobs.operations.plancounts import Glance
from jobs.outcomes import Refused
from jobs.sentences import sentence

SHOWN = 50
ROWS = 50
"""Changed or skipped rows that the page names; all of them are in the list of its rows."""
QUEUES = 5
"""Paused queues that are named."""
ICONS = {"retry": "refresh", "cancel": "cancelled", "hold": "lock", "unhold": "play"}


def may(user: Any) -> list[PlanAction]:
    """Return the mass actions that a person may prepare."""
    return [action for action in PlanAction if user.has_perm(plans.PERMISSIONS[action])]


class PlansPage(Page):
    """The newest plans."""

    template_name = "console/plans/list.html"
    folder = "console/plans"
    regions = ("table",)

    def page(self) -> dict[str, Any]:
        """Return the title."""
        return {"title": gettext_lazy("Mass actions")}

    def table(self) -> dict[str, Any]:
        """Return the newest plans, each with where it is."""
        rows = list(Plan.objects.order_by("-id")[: SHOWN + 1])
        listed = [(plan, plan.standing(self.around.now), wording.plan(plan.action)) for plan in rows[:SHOWN]]
        return {"plans": listed, "more": len(rows) > SHOWN, "limit": SHOWN}


class PreparePlan(Act):
    """What a plan would take, before there is one: the count first, then what to do and why."""

    template_name = "console/plans/new.html"
    verb, icon = gettext_lazy("Make the plan"), "n-record"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Make the plan; what comes from the list of jobs names them only, and is shown the form."""
        return super().post(request, *args, **kwargs) if "reason" in request.POST else self.whole({})

    @cached_property
    def filters(self) -> JobFilter:
        """The filters that the address names."""
        return JobFilter(QueryDict(self.request.GET.urlencode()), Job.objects.all())

    @cached_property
    def words(self) -> list[tuple[str, str]]:
        """The filters as they were given."""
        return [(name, value) for name, values in self.filters.active() for value in values]

    @cached_property
    def picked(self) -> list[uuid.UUID]:
        """The jobs that were picked one by one; what is no id is told by the form."""
        try:
            found: list[uuid.UUID] = planforms.IdsField().clean(self.request.POST.getlist("job"))
        except ValidationError:
            return []
        return found

    @cached_property
    def counts(self) -> dict[PlanAction, Glance]:
        """How many jobs each action that this person may do would take, as far as a glance tells."""
        actions = may(self.request.user)
        picked = bool(self.picked) or self.filters.has_few(plancounts.LOOKED)
        return plancounts.counts(actions, self.jobs(), filters=self.words, picked=picked)

    def jobs(self) -> QuerySet[Job]:
        """Return the jobs that are filtered for or picked."""
        found: QuerySet[Job] = self.filters.qs
        return found.filter(id__in=self.picked) if self.picked else found

    def page(self) -> dict[str, Any]:
        most = settings.INTERLOCK["PLAN_ROWS"]
        shown = {} if self.closed() else self.counts
        return super().page() | {
            "words": [(self.filters.form.fields[name].label, value) for name, value in self.words]
            if not self.problems
            else [],
            "picked": len(self.picked),
            "most": most,
            "looked": plancounts.LOOKED,
            "counts": [
                (ICONS[action], wording.plan(action), min(seen.n, most), seen.n > most, seen.more)
                for action, seen in shown.items()
            ],
            "problems": self.problems,
        }

    @cached_property
    def problems(self) -> list[tuple[str, str]]:
        """What of the address cannot be applied; then there is no plan."""
        return self.filters.problems()

    def title(self) -> str:
        return _("A plan for picked jobs") if self.picked else _("A plan for this filter")

    def closed(self) -> str:
        if self.problems:
            return _("The filter cannot be applied.")
        if not self.words and not self.picked:
            return sentence("PLAN_FILTER_EMPTY", {})
        if not may(self.request.user):
            return _("You may neither retry, cancel nor hold jobs.")
        try:
            some = any(seen.n or seen.more for seen in self.counts.values())
            return "" if some else sentence("PLAN_EMPTY", {})
        except Refused as refused:
            return str(refused)

    def effects(self) -> list[Effect]:
        return [
            Effect("lock", _("The plan names each job and the version that it is at now.")),
            Effect("info", _("Nothing happens to them yet: you see the plan and confirm it, or leave it.")),
            Effect("clock", _("It can be executed once, within ten minutes.")),
            Effect("skipped", _("A job that changes before its turn is left alone, and named."), "warn"),
        ]

    def back_url(self) -> str:
        query = self.request.GET.urlencode()
        return reverse("admin:jobs") + (f"?{query}" if query else "")

    def choices(self) -> list[tuple[str, str]]:
        """Return what can be done: to some jobs, or perhaps to one that was not looked at."""
        most = settings.INTERLOCK["PLAN_ROWS"]
        return [
            (action.value, wording.plan(action))
            for action, seen in self.counts.items()
            if (seen.n or seen.more) and seen.n <= most
        ]

    def fresh(self) -> planforms.PrepareForm:
        return planforms.PrepareForm(initial={"job": self.picked}, choices=self.choices())

    def form(self) -> planforms.PrepareForm:
        choices = [(action.value, wording.plan(action)) for action in PlanAction]
        return planforms.PrepareForm(self.request.POST, choices=choices)

    def unread(self, form: Any) -> HttpResponse:
        if not self.closed():
            form.fields["action"].choices = self.choices()
        return super().unread(form)

    def act(self, data: dict[str, Any]) -> HttpResponseBase:
        if self.problems or (data["job"] and data["job"] != self.picked):
            raise Refused("PLAN_EMPTY")
        plan = plans.prepare(
            data["action"],
            self.jobs(),
            actor=self.request.user,
            reason=data["reason"],
            filters=self.words,
            ids=self.picked,
        )
        return HttpResponseRedirect(reverse("admin:plan", args=[plan.id]))


class PlanPage(Page):
    """One plan: what it will do, how far it is while it runs, what it left out at the end."""

    template_name = "console/plans/page.html"
    folder = "console/plans"
    regions = ("state",)

    @cached_property
    def plan(self) -> Plan:
        """The plan that the address names."""
        try:
            return plans.look(self.kwargs["plan_id"])
        except Refused as refused:
            raise Http404(str(refused)) from None

    def page(self) -> dict[str, Any]:
        """Return the title."""
        return {"title": self._title(), "plan": self.plan}

    def _title(self) -> str:
        text = ngettext("%(what)s: %(n)s job", "%(what)s: %(n)s jobs", self.plan.total)
        return text % {"what": wording.plan(self.plan.action), "n": f"{self.plan.total:,}"}

    def state(self) -> dict[str, Any]:
        """Return everything that moves, and the forms that are open as it stands."""
        plan, standing = self.plan, self.plan.standing(self.around.now)
        skipped = PlanRow.objects.filter(plan=plan, outcome=RowOutcome.SKIPPED).order_by("id")
        named = [] if standing == PlanState.PLANNED else list(skipped[:ROWS])
        changed = plans.changed(plan) if standing == PlanState.PLANNED else []
        moved = {one.job_id for one in changed}
        largest = [(row, uuid.UUID(row["job_id"])) for row in plan.summary.get("largest", [])]
        named_ids = [one.job_id for one in changed[:ROWS]] + [key for _, key in largest if key in moved]
        who = history.since(list(dict.fromkeys(named_ids)), plan.created_at, self.around.now)
        allowed = self.request.user.has_perm(plans.PERMISSIONS[PlanAction(plan.action)])
        return {
            "plan": plan,
            "standing": standing.value,
            "act_icon": ICONS[plan.action],
            "verb": wording.plan(plan.action),
            "dear": plan.action == PlanAction.CANCEL,
            "effects": _effects(plan, self.around.paused) if standing == PlanState.PLANNED else [],
            "statuses": plan.summary["statuses"].items(),
            "kinds": list(plan.summary["kinds"].items())[:10],
            "more_kinds": max(0, len(plan.summary["kinds"]) - 10),
            "oldest": Job.created_at.field.to_python(plan.summary["oldest"]),
            "newest": Job.created_at.field.to_python(plan.summary["newest"]),
            "amounts": _amounts(plan.summary),
            "largest": [(row, _amounts(row), key in moved, who.get(key, "")) for row, key in largest],
            "changed": [(one, who.get(one.job_id, "")) for one in changed[:ROWS]],
            "changed_count": len(changed),
            "more_changed": max(0, len(changed) - ROWS),
            "rows": [(row, sentence(row.code, row.params)) for row in named],
            "more_rows": max(0, plan.skipped - ROWS),
            "requested": plan.rows.filter(requested=True).count() if plan.action == "cancel" else 0,
            "percent": 100 * (plan.done + plan.skipped) // plan.total,
            "typing": plans.needs_typing(plan),
            "stopped": _stopped(plan),
            "may_execute": allowed and standing == PlanState.PLANNED,
            "may_abort": allowed and standing in (PlanState.PLANNED, PlanState.RUNNING),
        }


class PlanAct(Sent, PlanPage):
    """What is sent from a plan's page. Only sent, never fetched: who opens its address is led to the plan."""

    http_method_names = ["get", "head", "post", "options"]

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Lead to the plan."""
        return self.back()

    def form(self) -> planforms.ExecuteForm:
        return planforms.ExecuteForm(self.request.POST)

    def again(self) -> HttpResponseBase:
        return self.back()

    def unread(self, form: Any) -> HttpResponse:
        return self.refuse(Refused("PLAN_NOT_TYPED", rows=self.plan.total), form)

    def refuse(self, refused: Refused, form: Any) -> HttpResponse:
        """Return the plan as it is now, with what stands against it."""
        self.__dict__.pop("plan", None)
        self.request.surroundings = None  # type: ignore[attr-defined]  # read again: the world moved
        return self.whole({"refusal": {"text": str(refused)}}, CODES.get(refused.code, 409))

    def back(self) -> HttpResponseRedirect:
        return HttpResponseRedirect(reverse("admin:plan", args=[self.kwargs["plan_id"]]))


class ExecutePlan(PlanAct):
    """Begin the plan."""

    def act(self, data: dict[str, Any]) -> None:
        plans.begin(self.plan.id, actor=self.request.user, typed=data["typed"])


class AbortPlan(PlanAct):
    """End the plan, or leave it before it has begun."""

    def act(self, data: dict[str, Any]) -> None:
        plan = plans.abort(self.plan.id, actor=self.request.user)
        text = ngettext(
            "Stopped. %(n)s job was not touched.", "Stopped. %(n)s jobs were not touched.", plan.left
        )
        self.tell(text % {"n": f"{plan.left:,}"})


def _stopped(plan: Plan) -> str:
    """Say what stopped a plan where no person did."""
    if error := errors.lookup(plan.ended_why):
        return error.meaning
    permission = plans.PERMISSIONS[PlanAction(plan.action)]
    known = {"user": plan.executed_by, "permission": permission, "token": plan.token and plan.token.prefix}
    return sentence(plan.ended_why, known) if plan.ended_why else ""


def _waiting(plan: Plan, paused: Mapping[str, Any]) -> list[Effect]:
    """Say of which queues no job starts for now: they are paused."""
    found: list[Effect] = []
    for name, n in plan.summary.get("queues", {}).items():
        if name in paused and len(found) < QUEUES:
            text = ngettext(
                "Queue %(name)s is paused: its %(n)s job does not start before it is resumed.",
                "Queue %(name)s is paused: none of its %(n)s jobs starts before it is resumed.",
                n,
            )
            found.append(Effect("pause", text % {"name": name, "n": f"{n:,}"}, "warn"))
    return found


def _effects(plan: Plan, paused: Mapping[str, Any]) -> list[Effect]:
    """Say in plain words what executing it will do."""
    n = plan.total
    match plan.action:
        case PlanAction.RETRY:
            text = ngettext(
                "%(n)s ended job is run again from the top, with a fresh budget of attempts.",
                "%(n)s ended jobs are run again from the top, each with a fresh budget of attempts.",
                n,
            )
            found = [
                Effect("refresh", text % {"n": n}),
                Effect("committed", _("Effects that took place answer from their record; none is repeated.")),
            ]
        case PlanAction.CANCEL:
            text = ngettext(
                "%(n)s job is cancelled, and its children.",
                "%(n)s jobs are cancelled, and their children.",
                n,
            )
            found = [
                Effect("cancelled", text % {"n": n}, "bad"),
                Effect("running", _("Who runs one is asked to stop; it ends when its code acknowledges.")),
                Effect("send", _("Whatever has left us already is not reversed."), "warn"),
            ]
        case PlanAction.HOLD:
            text = ngettext("%(n)s job is put on hold.", "%(n)s jobs are put on hold.", n)
            found = [
                Effect("lock", text % {"n": n}),
                Effect("running", _("What runs already runs on, but its result is not accepted meanwhile.")),
            ]
        case _:
            text = ngettext("The hold of %(n)s job is lifted.", "The holds of %(n)s jobs are lifted.", n)
            found = [Effect("play", text % {"n": n}), Effect("pending", _("What is due may run at once."))]
            for reason, count in plan.summary["holds"].items():
                if reason != "operator":
                    words = {"n": count, "reason": reason}
                    found.append(Effect("warn", _("%(n)s of them are held for %(reason)s.") % words, "warn"))
    if plan.action in (PlanAction.RETRY, PlanAction.UNHOLD):
        found += _waiting(plan, paused)
    return [*found, Effect("skipped", _("A job that has changed since is left alone, and named below."))]


def _amounts(kept: dict[str, Any]) -> list[str]:
    return [money(Decimal(amount), currency) for currency, amount in kept.get("amounts", {}).items()]
