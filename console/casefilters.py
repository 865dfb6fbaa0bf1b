"""What the inbox may be filtered by, in the address."""

from __future__ import annotations

from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import casefile, pinned, providers, questions
from console.environment import surroundings
from console.filters import CursorField, Filter, StrictFilterSet, text_filter
from jobs import narrowing
from jobs.models import Case
from jobs.models.case import CaseKind
from jobs.operations import approvals


class PinsField(forms.CharField):
    """The lines that a page shows already; cleans to their pins."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{**more, "max_length": 40 * pinned.MOST})

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        pins = pinned.parsed(text) if text else []
        if pins is None:
            raise ValidationError(_("This is no place in the list; begin with its first page."))
        return pins


class AmountField(forms.DecimalField):
    """An amount from which on; cleans to a Decimal."""

    def __init__(self, **more: Any) -> None:
        more.pop("max_length", None)
        super().__init__(max_digits=20, decimal_places=4, min_value=0, widget=forms.TextInput, **more)


class CaseFilter(StrictFilterSet):
    """Filters of the inbox."""

    OF_CLOSED = ("state", "kind", "effect_kind", "label", "provider", "cause", "least", "after")
    """What closed cases can be filtered by; the others ask about a case that is open."""

    state = django_filters.ChoiceFilter(
        label=gettext_lazy("State"),
        choices=[("open", gettext_lazy("open")), ("closed", gettext_lazy("closed"))],
        method="not_here",
        widget=forms.HiddenInput,
    )
    kind = django_filters.ChoiceFilter(
        label=gettext_lazy("Case"),
        choices=[
            (CaseKind.UNKNOWN.value, gettext_lazy("outcome unknown")),
            (CaseKind.CONFLICT.value, gettext_lazy("payload conflict")),
            (CaseKind.APPROVAL.value, gettext_lazy("approval")),
            (CaseKind.CONTRADICTION.value, gettext_lazy("contradiction")),
        ],
        empty_label=gettext_lazy("any"),
    )
    effect_kind = text_filter(gettext_lazy("Effect kind"))
    label = text_filter(gettext_lazy("Label holds"), lookup_expr="icontains")
    provider = text_filter(gettext_lazy("Provider"), method="by_provider")
    evidence = django_filters.ChoiceFilter(
        label=gettext_lazy("Evidence"),
        choices=[
            ("no_connection", gettext_lazy("no connection")),
            ("broke", gettext_lazy("connection broke")),
            ("no_answer", gettext_lazy("no answer in time")),
            ("unreadable", gettext_lazy("unreadable answer")),
            ("lost", gettext_lazy("sender lost")),
        ],
        empty_label=gettext_lazy("any"),
        method="by_evidence",
    )
    cause = text_filter(gettext_lazy("Error"))
    least = Filter(AmountField, label=gettext_lazy("Amount from"), field_name="amount", lookup_expr="gte")
    owner = django_filters.ChoiceFilter(
        label=gettext_lazy("Owner"),
        choices=[("me", gettext_lazy("mine")), ("nobody", gettext_lazy("nobody's"))],
        empty_label=gettext_lazy("anybody"),
        method="by_owner",
    )
    parked = django_filters.ChoiceFilter(
        label=gettext_lazy("Parked"),
        choices=[("yes", gettext_lazy("parked")), ("no", gettext_lazy("not parked"))],
        empty_label=gettext_lazy("does not matter"),
        method="by_parked",
    )
    waiting = django_filters.ChoiceFilter(
        label=gettext_lazy("Second person"),
        choices=[
            (approvals.ME, gettext_lazy("waits for my approval")),
            (approvals.ANYBODY, gettext_lazy("waits for somebody's")),
        ],
        empty_label=gettext_lazy("does not matter"),
        method="by_waiting",
    )
    sla = django_filters.ChoiceFilter(
        label=gettext_lazy("SLA"),
        choices=[("breached", gettext_lazy("breached"))],
        empty_label=gettext_lazy("does not matter"),
        method="by_sla",
    )
    like = Filter(CursorField, label=gettext_lazy("One outage"), method="not_here", widget=forms.HiddenInput)
    after = Filter(CursorField, method="not_here")
    shown = Filter(PinsField, method="not_here")

    def __init__(self, data: QueryDict, queryset: QuerySet[Any], *, request: HttpRequest) -> None:
        self.asking = request
        self.user, self.now = request.user.get_username(), surroundings(request).now
        super().__init__(data, queryset)

    @property
    def closed(self) -> bool:
        """Whether the closed cases are asked for, and not the open ones."""
        return bool(self.data.get("state") == "closed")

    def problems(self) -> list[tuple[str, str]]:
        """Return what cannot be applied, a question about open cases put to closed ones too."""
        found = super().problems()
        if self.closed:
            open_only = [
                name for name in self.data if name in self.base_filters and name not in self.OF_CLOSED
            ]
            found += [(name, _("Only open cases can be filtered by it.")) for name in open_only]
        return found

    def by_waiting(self, cases: QuerySet[Case], _name: str, value: str) -> QuerySet[Case]:
        """Keep the cases in which somebody asks for this person's approval, or for anybody's."""
        asked = questions.mine if value == approvals.ME else questions.every
        return cases.filter(pk__in=[question.case_id for question in asked(self.asking)])

    def by_provider(self, cases: QuerySet[Case], _name: str, value: str) -> QuerySet[Case]:
        """Keep the cases whose effect asks this provider."""
        return cases.filter(providers.asked(value))

    def by_evidence(self, cases: QuerySet[Case], _name: str, value: str) -> QuerySet[Case]:
        """Keep the unknown outcomes of which the sender met this."""
        return cases.filter(casefile.met(value))

    def by_sla(self, cases: QuerySet[Case], _name: str, _value: str) -> QuerySet[Case]:
        """Keep the cases whose time limit is over."""
        return cases.filter(narrowing.case_late(self.now))

    def by_owner(self, cases: QuerySet[Case], _name: str, value: str) -> QuerySet[Case]:
        """Keep the cases that this person has taken, or that nobody has."""
        return cases.filter(narrowing.case_of(value, self.user, self.now))

    def by_parked(self, cases: QuerySet[Case], _name: str, value: str) -> QuerySet[Case]:
        """Keep the cases that are put aside at this moment, or those that are not."""
        return cases.filter(narrowing.case_parked(value, self.now))

    def not_here(self, cases: QuerySet[Case], _name: str, _value: Any) -> QuerySet[Case]:
        """A place in the list is no filter."""
        return cases
