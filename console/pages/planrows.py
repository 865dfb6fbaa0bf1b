"""The rows of a plan: all that was frozen, a page at a time, and as a file."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import csvfile, history, wording
from console.pages.base import Page
from jobs.models import Job, Plan, PlanRow
from jobs.models.plan import PlanState, RowOutcome
from jobs.money import money
from jobs.operations import planrows, plans, planworth
from jobs.outcomes import Refused
from jobs.sentences import sentence

SIZE = 50
HIGHEST = 2**53 - 1


class RowsForm(forms.Form):
    """Which rows, and after which one."""

    outcome = forms.ChoiceField(
        label=gettext_lazy("What became of it"),
        choices=[
            ("", gettext_lazy("all")),
            ("pending", gettext_lazy("not touched")),
            ("done", gettext_lazy("done")),
            ("skipped", gettext_lazy("skipped")),
        ],
        required=False,
    )
    after = forms.IntegerField(min_value=0, max_value=HIGHEST, required=False, widget=forms.HiddenInput)


@dataclass(frozen=True)
class Line:
    """One row of a plan, with its job as it is now."""

    row: PlanRow
    kind: str
    label: str
    status: str
    """Empty where the job is not there any more."""
    changed: bool
    """Not done yet, and not as it was frozen: it will be skipped."""
    amounts: list[str]
    why: str
    """Why it was skipped; of a changed one what was done to it last, where that is known."""


class PlanRowsPage(Page):
    """The rows of one plan in the order that they are gone through."""

    template_name = "console/plans/rows.html"
    folder = "console/plans"
    regions: ClassVar[tuple[str, ...]] = ("items",)

    @cached_property
    def plan(self) -> Plan:
        """The plan that the address names."""
        try:
            return plans.look(self.kwargs["plan_id"])
        except Refused as refused:
            raise Http404(str(refused)) from None

    @cached_property
    def rows_form(self) -> RowsForm:
        """Which rows the address asks for."""
        return RowsForm(self.request.GET)

    @cached_property
    def problems(self) -> list[tuple[str, str]]:
        """What of the address cannot be applied; then nothing is listed."""
        told = {name: str(errors[0]) for name, errors in self.rows_form.errors.items()}
        unknown = self.request.GET.keys() - self.rows_form.fields.keys()
        return [*told.items(), *((name, _("There is no such filter.")) for name in sorted(unknown))]

    def page(self) -> dict[str, Any]:
        """Return the plan and the filter."""
        return {"title": _("Frozen rows"), "plan": self.plan, "form": self.rows_form, "verb": self._verb()}

    def _verb(self) -> str:
        return wording.plan(self.plan.action)

    def items(self) -> dict[str, Any]:
        """Return one page of the rows."""
        if self.problems:
            return {"plan": self.plan, "problems": self.problems, "http_status": 400}
        outcome, place = (self.rows_form.cleaned_data[name] for name in ("outcome", "after"))
        found = planrows.after(self.plan, place or 0, outcome=outcome, most=SIZE + 1)
        kept = [("outcome", outcome)] if outcome else []
        return {
            "plan": self.plan,
            "lines": self.lines(found[:SIZE]),
            "planned": self.plan.standing(self.around.now) == PlanState.PLANNED,
            "on_first": not place,
            "first_url": "?" + urlencode(kept),
            "next_url": "?" + urlencode([*kept, ("after", found[SIZE - 1].id)]) if len(found) > SIZE else "",
            "export_url": f"{reverse('admin:plan-export', args=[self.plan.id])}?{urlencode(kept)}",
        }

    def lines(self, rows: Sequence[PlanRow], *, told: bool = True) -> list[Line]:
        """Return rows with their jobs, read by their ids; with `told` also who has changed them since."""
        ids = [row.job_id for row in rows]
        columns = ("id", "kind", "label", "status", "state_version")
        jobs = {one[0]: one[1:] for one in Job.objects.filter(id__in=ids).values_list(*columns)}
        amounts = planworth.of_jobs(ids)
        moved = [
            row.job_id
            for row in rows
            if row.outcome == RowOutcome.PENDING
            and (row.job_id not in jobs or jobs[row.job_id][3] != row.seen_version)
        ]
        who = history.since(moved, self.plan.created_at, self.around.now) if told else {}
        return [
            _line(row, jobs.get(row.job_id), row.job_id in moved, amounts.get(row.job_id, {}), who)
            for row in rows
        ]


class PlanRowsExport(PlanRowsPage):
    """The same rows as a file."""

    regions = ()
    columns: ClassVar[list[str]] = [
        *("job", "kind", "label", "status_now", "amounts", "seen_version", "outcome", "changed_since"),
        *("code", "why", "cancel_requested", "at"),
    ]
    complete = True

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> Any:
        """Stream the rows; an address that cannot be applied is led to the page, which says why."""
        if self.problems:
            here = reverse("admin:plan-rows", args=[self.plan.id])
            return HttpResponseRedirect(f"{here}?{request.GET.urlencode()}")
        return csvfile.answer(f"plan-{self.plan.id}", self.columns, self.cells(), lambda: self.complete)

    def cells(self) -> Iterator[list[Any]]:
        """Yield the rows, reading some hundreds of them at a time."""
        outcome, place = (self.rows_form.cleaned_data[name] for name in ("outcome", "after"))
        while found := planrows.after(self.plan, place or 0, outcome=outcome, most=csvfile.CHUNK):
            for line in self.lines(found, told=False):
                row = line.row
                yield [
                    *(row.job_id, line.kind, line.label, line.status, ", ".join(line.amounts)),
                    *(row.seen_version, row.outcome, "yes" if line.changed else "no"),
                    *(row.code, line.why, "yes" if row.requested else "no", row.at),
                ]
            place = found[-1].id


def texts(amounts: dict[str, Decimal]) -> list[str]:
    """Return sums by currency as people read them."""
    return [money(amount, currency) for currency, amount in amounts.items()]


def _line(
    row: PlanRow,
    job: Sequence[Any] | None,
    changed: bool,
    amounts: dict[str, Decimal],
    who: dict[uuid.UUID, str],
) -> Line:
    kind, label, status, _version = job or ("", "", "", 0)
    why = sentence(row.code, row.params) if row.code else who.get(row.job_id, "")
    return Line(row, kind, label, status, changed, texts(amounts), why)
