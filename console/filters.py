"""What the lists may be filtered by. A filter that is unknown or cannot be read is an error, never ignored.

An ignored filter shows everything, and the reader takes it for what was asked.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import cached_property
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import casefile, pinned, providers, questions, walk
from console.environment import surroundings
from jobs import narrowing, search, searching
from jobs.ledger import indexed
from jobs.ledger.clock import clock
from jobs.models import AuditEntry, Case, FenceRefusal, Job
from jobs.models.audit import WIDTHS
from jobs.models.case import CaseKind
from jobs.operations import approvals
from jobs.outcomes import REASONS
from jobs.searching import Attribute, Unsearchable
from jobs.status import CLAIMABLE, HoldReason, JobStatus


class AgeField(forms.CharField):
    """`24h` or `<24h`: younger than that; `>7d`: older. Cleans to (older, length)."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        found = narrowing.age(text)
        if found is None:
            raise ValidationError(_("A length of time such as 30m, 24h, >7d: a number, then s, m, h or d."))
        if found[1] > narrowing.OLDEST:
            raise ValidationError(_("At most a hundred years."))
        return found


class IdField(forms.CharField):
    """A job's id, whole or its first characters. Cleans to the lowest and highest id meant."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        found = narrowing.beginning(text)
        if found is None:
            raise ValidationError(_("A job's id, or at least the first four of its hexadecimal digits."))
        return found


class TagField(forms.CharField):
    """A tag, whole. Cleans to the attribute to look for."""

    def clean(self, value: Any) -> Any:
        return _attribute(searching.tag, super().clean(value))


class ArgumentField(forms.CharField):
    """`invoice=INV-17`: an argument that a kind declares, and all of its value. Cleans to the attribute."""

    def clean(self, value: Any) -> Any:
        return _attribute(searching.argument, super().clean(value))


def _attribute(read: Callable[[str], Attribute], text: str) -> Attribute | None:
    try:
        return read(text) if text else None
    except Unsearchable as error:
        text = str(error)
        raise ValidationError(_("%s.") % (text[:1].upper() + text[1:])) from None


class CursorField(forms.CharField):
    """Where a page begins: an id that a page before handed out."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            return uuid.UUID(text)
        except ValueError:
            raise ValidationError(_("This is no place in the list; begin with its first page.")) from None


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


class NumberField(forms.CharField):
    """Where a page begins: a number that a page before handed out, in plain digits."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and int(text) < 2**63):
            raise ValidationError(_("This is no place in the list; begin with its first page."))
        return int(text)


class _Filter(django_filters.Filter):  # type: ignore[misc]  # django-filter has no types
    def __init__(self, field_class: type[forms.Field], *, max_length: int = 100, **more: Any) -> None:
        self.field_class = field_class
        super().__init__(max_length=max_length, **more)


class StrictFilterSet(django_filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """A filter set whose form also refuses names that it does not know and names given twice."""

    def __init__(self, data: QueryDict, queryset: QuerySet[Any]) -> None:
        self.strangers = sorted(set(data) - set(self.base_filters))
        many = {n for n, f in self.base_filters.items() if isinstance(f, django_filters.MultipleChoiceFilter)}
        # A form that is sent with a field left empty names the field all the same.
        given = {name: [v for v in values if v.strip()] for name, values in data.lists()}
        self.twice = sorted(n for n, values in given.items() if len(values) > 1 and n not in many)
        kept = QueryDict(mutable=True)
        for name, values in given.items():
            if values:
                kept.setlist(name, values)
        super().__init__(kept, queryset)

    def problems(self) -> list[tuple[str, str]]:
        """Return (filter, what is wrong with it) for each filter that cannot be applied."""
        known = ", ".join(n for n in self.base_filters if n not in CURSORS)
        found = [
            (name[:80], _("There is no such filter. There are: %(known)s.") % {"known": known})
            for name in self.strangers[:5]
        ]
        found += [(name, _("Given more than once.")) for name in self.twice]
        if not self.form.is_valid():
            found += [(name, str(error)) for name, errors in self.form.errors.items() for error in errors]
        return found

    def active(self) -> list[tuple[str, list[str]]]:
        """Return the filters in use with their values as given, cursors aside."""
        return [
            (name, self.data.getlist(name))
            for name in self.base_filters
            if name in self.data and name not in CURSORS
        ]


CURSORS = ("before", "after", "top", "shown")


def _text(label: Any, **more: Any) -> Any:
    return django_filters.CharFilter(label=label, max_length=200, **more)


class JobFilter(StrictFilterSet):
    """Filters of the job list, in the address."""

    status = django_filters.MultipleChoiceFilter(
        label=gettext_lazy("Status"),
        choices=[(s.value, s.value) for s in JobStatus],
        widget=forms.CheckboxSelectMultiple,
        distinct=False,
    )
    kind = _text(gettext_lazy("Kind"))
    queue = _text(gettext_lazy("Queue"))
    worker = _text(gettext_lazy("Worker"), method="by_worker")
    key = _text(gettext_lazy("Key"), method="by_key")
    tag = _Filter(TagField, max_length=search.LONGEST_TAG, label=gettext_lazy("Tag"), method="not_here")
    arg = _Filter(
        ArgumentField,
        max_length=searching.LONGEST,
        label=gettext_lazy("Argument"),
        method="not_here",
        widget=forms.TextInput(attrs={"placeholder": "invoice=INV-17", "list": "arguments"}),
    )
    error_code = _text(gettext_lazy("Error code"))
    age = _Filter(AgeField, label=gettext_lazy("Age"), method="by_age")
    label = _text(gettext_lazy("Label holds"), lookup_expr="icontains")
    hold = django_filters.ChoiceFilter(
        label=gettext_lazy("On hold"),
        choices=[("any", gettext_lazy("for any reason")), *((h.value, h.value) for h in HoldReason)],
        empty_label=gettext_lazy("does not matter"),
        method="by_hold",
    )
    parent = _Filter(CursorField, label=gettext_lazy("Parent"))
    id = _Filter(IdField, label=gettext_lazy("Id"), method="by_id")
    q = _text(gettext_lazy("Search"), method="by_any")
    before = _Filter(CursorField, method="not_here")
    after = _Filter(CursorField, method="not_here")
    top = _Filter(CursorField, method="not_here")

    def by_worker(self, jobs: QuerySet[Job], _name: str, value: str) -> QuerySet[Job]:
        """Keep the jobs that this worker holds; `host` and `host:pid` mean all of them."""
        return jobs.filter(narrowing.of_worker(value))

    def by_key(self, jobs: QuerySet[Job], _name: str, value: str) -> QuerySet[Job]:
        """Keep the jobs with this unique or concurrency key."""
        return jobs.filter(narrowing.with_key(value))

    def by_age(self, jobs: QuerySet[Job], _name: str, value: tuple[bool, timedelta]) -> QuerySet[Job]:
        """Keep the jobs enqueued after, or before, an instant that lies so far back."""
        return jobs.filter(narrowing.of_age(value, clock()))

    def by_hold(self, jobs: QuerySet[Job], _name: str, value: str) -> QuerySet[Job]:
        """Keep the jobs on hold for this reason, or any."""
        return jobs.filter(narrowing.on_hold(value))

    def by_id(self, jobs: QuerySet[Job], _name: str, value: tuple[uuid.UUID, uuid.UUID]) -> QuerySet[Job]:
        """Keep the jobs whose id begins so."""
        return jobs.filter(id__range=value)

    def by_any(self, jobs: QuerySet[Job], _name: str, value: str) -> QuerySet[Job]:
        """Keep the jobs that this may be the id, the key or a part of the label of."""
        return jobs.filter(narrowing.anything(value))

    def not_here(self, jobs: QuerySet[Job], _name: str, _value: Any) -> QuerySet[Job]:
        """The walk begins at a place in the list; tag and argument are one filter together."""
        return jobs

    def filter_queryset(self, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """Keep the jobs that all filters ask for."""
        jobs: QuerySet[Job] = super().filter_queryset(queryset)
        return searching.having(jobs, self.attributes)

    @cached_property
    def attributes(self) -> list[Attribute]:
        """What the jobs are to have, the rarest first."""
        clean = self.form.cleaned_data
        return searching.rarest_first([found for found in (clean["arg"], clean["tag"]) if found])

    def has_few(self, most: int) -> bool:
        """Whether a tag or an argument is asked for that so many jobs have at most."""
        return bool(self.attributes) and searching.window(searching.rows(self.attributes[0]), most) is None

    @cached_property
    def way(self) -> Attribute | None:
        """The attribute along whose rows the list is walked; none where fewer jobs are found otherwise."""
        clean = self.form.cleaned_data
        if not self.attributes or clean["hold"] or clean["parent"] or clean["id"]:
            return None
        first = self.attributes[0]
        if len(clean["status"]) == 1 and searching.is_common(first):
            of_status = self._of_status(clean["status"][0])
            if of_status is not None and searching.window(of_status, walk.WINDOW) is None:
                return None
        return first

    def walked(self, *columns: str) -> tuple[QuerySet[Job], QuerySet[Any]]:
        """Return the jobs asked for, with these columns, and the scope to walk them in."""
        scope = self.scope()
        if self.way is not None:
            jobs = super().filter_queryset(Job.objects.only(*columns))
            return searching.having(jobs, [one for one in self.attributes if one != self.way]), scope
        # Within the scope, whose own condition leads along its index.
        self.queryset = scope.only(*columns)
        return self.qs, scope

    def scope(self) -> QuerySet[Any]:
        """Return what an index finds by itself and holds every match: what the walk counts.

        Jobs, or the rows of an attribute that all of them have.
        """
        jobs: QuerySet[Job] = Job.objects.all()
        clean = self.form.cleaned_data
        if clean["hold"]:
            return indexed.held(jobs)
        if clean["parent"]:
            return jobs.filter(parent=clean["parent"])
        if clean["id"]:
            return jobs.filter(id__range=clean["id"])
        if self.way is not None:
            return searching.rows(self.way)
        if len(clean["status"]) != 1:  # several statuses would have to be sorted together
            return jobs
        scope = self._of_status(clean["status"][0])
        return jobs if scope is None else scope

    def _of_status(self, status: str) -> QuerySet[Job] | None:
        """Return the jobs of one status by an index of it; None where there is none, or too many of them."""
        if status in CLAIMABLE:
            few = walk.few_claimable(status)
            return None if few is None else Job.objects.filter(id__in=few)
        return walk.along_index(status)

    def scope_is_all(self) -> bool:
        """Whether every job of the scope is one that is asked for."""
        asked = {name for name, _values in self.active()}
        statuses = self.form.cleaned_data["status"]
        one = asked == {"status"} and len(statuses) == 1 and walk.along_index(statuses[0]) is not None
        return one or asked in ({"tag"}, {"arg"}) or not asked


class RefusalFilter(StrictFilterSet):
    """Filters of the refused writes."""

    reason = django_filters.ChoiceFilter(
        label=gettext_lazy("Reason"), choices=[(r, r) for r in REASONS], empty_label=gettext_lazy("any")
    )
    worker = _text(gettext_lazy("Worker"), method="by_worker")
    job = _Filter(CursorField, label=gettext_lazy("Job"), field_name="job_id")
    before = _Filter(NumberField, method="not_here")

    def by_worker(self, refusals: QuerySet[FenceRefusal], _name: str, value: str) -> QuerySet[FenceRefusal]:
        """Keep the refusals of this worker; `host` and `host:pid` mean all of them."""
        return refusals.filter(narrowing.of_worker(value))

    def not_here(self, refusals: QuerySet[FenceRefusal], _name: str, _value: Any) -> QuerySet[FenceRefusal]:
        """A place in the list is no filter."""
        return refusals


def _exact(name: str, label: Any, example: str) -> Any:
    widget = forms.TextInput(attrs={"placeholder": example})
    return django_filters.CharFilter(label=label, max_length=WIDTHS[name], widget=widget)


class AuditFilter(StrictFilterSet):
    """Filters of the audit. Each of them is exact: the chain is long, and nothing else is indexed."""

    actor = _exact("actor", gettext_lazy("Person"), "ada")
    action = _exact("action", gettext_lazy("Action"), "force_cancel")
    object_type = _exact("object_type", gettext_lazy("Object"), "job, case, queue")
    object_id = _exact("object_id", gettext_lazy("Its id"), "")
    before = _Filter(NumberField, method="not_here", widget=forms.HiddenInput)

    def not_here(self, entries: QuerySet[AuditEntry], _name: str, _value: Any) -> QuerySet[AuditEntry]:
        """A place in the list is no filter."""
        return entries


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
    effect_kind = _text(gettext_lazy("Effect kind"))
    label = _text(gettext_lazy("Label holds"), lookup_expr="icontains")
    provider = _text(gettext_lazy("Provider"), method="by_provider")
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
    cause = _text(gettext_lazy("Error"))
    least = _Filter(AmountField, label=gettext_lazy("Amount from"), field_name="amount", lookup_expr="gte")
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
    like = _Filter(CursorField, label=gettext_lazy("One outage"), method="not_here", widget=forms.HiddenInput)
    after = _Filter(CursorField, method="not_here")
    shown = _Filter(PinsField, method="not_here")

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
