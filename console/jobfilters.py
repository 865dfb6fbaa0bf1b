"""What the list of jobs may be filtered by, in the address."""

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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import walk
from console.filters import CursorField, Filter, StrictFilterSet, text_filter
from jobs import narrowing, search, searching
from jobs.ledger import indexed
from jobs.ledger.clock import clock
from jobs.models import Job
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


class JobFilter(StrictFilterSet):
    """Filters of the job list, in the address."""

    status = django_filters.MultipleChoiceFilter(
        label=gettext_lazy("Status"),
        choices=[(s.value, s.value) for s in JobStatus],
        widget=forms.CheckboxSelectMultiple,
        distinct=False,
    )
    kind = text_filter(gettext_lazy("Kind"))
    queue = text_filter(gettext_lazy("Queue"))
    worker = text_filter(gettext_lazy("Worker"), method="by_worker")
    key = text_filter(gettext_lazy("Key"), method="by_key")
    tag = Filter(TagField, max_length=search.LONGEST_TAG, label=gettext_lazy("Tag"), method="not_here")
    arg = Filter(
        ArgumentField,
        max_length=searching.LONGEST,
        label=gettext_lazy("Argument"),
        method="not_here",
        widget=forms.TextInput(attrs={"placeholder": "invoice=INV-17", "list": "arguments"}),
    )
    error_code = text_filter(gettext_lazy("Error code"))
    age = Filter(AgeField, label=gettext_lazy("Age"), method="by_age")
    label = text_filter(gettext_lazy("Label holds"), lookup_expr="icontains")
    hold = django_filters.ChoiceFilter(
        label=gettext_lazy("On hold"),
        choices=[("any", gettext_lazy("for any reason")), *((h.value, h.value) for h in HoldReason)],
        empty_label=gettext_lazy("does not matter"),
        method="by_hold",
    )
    parent = Filter(CursorField, label=gettext_lazy("Parent"))
    id = Filter(IdField, label=gettext_lazy("Id"), method="by_id")
    q = text_filter(gettext_lazy("Search"), method="by_any")
    before = Filter(CursorField, method="not_here")
    after = Filter(CursorField, method="not_here")
    top = Filter(CursorField, method="not_here")

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
