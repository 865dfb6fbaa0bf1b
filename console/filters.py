"""What the lists may be filtered by. A filter that is unknown or cannot be read is an error, never ignored.

An ignored filter shows everything, and the reader takes it for what was asked.
"""

from __future__ import annotations

import uuid
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs import narrowing
from jobs.models import AuditEntry, FenceRefusal
from jobs.models.audit import WIDTHS
from jobs.outcomes import REASONS


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


class NumberField(forms.CharField):
    """Where a page begins: a number that a page before handed out, in plain digits."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and int(text) < 2**63):
            raise ValidationError(_("This is no place in the list; begin with its first page."))
        return int(text)


class Filter(django_filters.Filter):  # type: ignore[misc]  # django-filter has no types
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


def text_filter(label: Any, **more: Any) -> Any:
    return django_filters.CharFilter(label=label, max_length=200, **more)


class RefusalFilter(StrictFilterSet):
    """Filters of the refused writes."""

    reason = django_filters.ChoiceFilter(
        label=gettext_lazy("Reason"), choices=[(r, r) for r in REASONS], empty_label=gettext_lazy("any")
    )
    worker = text_filter(gettext_lazy("Worker"), method="by_worker")
    job = Filter(CursorField, label=gettext_lazy("Job"), field_name="job_id")
    before = Filter(NumberField, method="not_here")

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
    before = Filter(NumberField, method="not_here", widget=forms.HiddenInput)

    def not_here(self, entries: QuerySet[AuditEntry], _name: str, _value: Any) -> QuerySet[AuditEntry]:
        """A place in the list is no filter."""
        return entries
