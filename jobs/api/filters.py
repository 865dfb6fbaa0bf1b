"""What a list of jobs may be narrowed by; a name or a value that is not known is refused, never ignored.

django-filter reads declared names only, so a misspelt one would return everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

import django_filters
from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs import handlers, narrowing, search, searching
from jobs.api import schema
from jobs.api.fields import parse_instant, parse_uuid
from jobs.api.problems import Problem
from jobs.api.schema import Schema
from jobs.handlers import LEAST_PRIORITY, MOST_PRIORITY
from jobs.ledger import indexed
from jobs.ledger.clock import clock
from jobs.models import Job
from jobs.searching import Attribute, Unsearchable
from jobs.status import HoldReason, JobStatus, WaitReason

REPEATS = 50
"""How often one name may be repeated, where any of its values will do."""


FEW = frozenset({"id", "parent_id", "parent", "hold_reason", "hold"})
"""What is found by an index of its own, and is never many (see Job.Meta.indexes)."""


class InstantField(forms.Field):
    """An instant with its zone; a `+` that arrived as a blank is meant as a plus."""

    def to_python(self, value: Any) -> Any:
        if value is None:
            return None
        moment = parse_instant(value[:-6] + "+" + value[-5:] if value[-6:-5] == " " else value)
        if moment is None:
            raise forms.ValidationError(
                _("an instant like 2026-01-31T12:00:00Z, from 1970 to before 9000, is needed")
            )
        return moment


class UUIDField(forms.Field):
    """A UUID of 32 or 36 characters."""

    def to_python(self, value: Any) -> Any:
        if value is None:
            return None
        found = parse_uuid(value)
        if found is None:
            raise forms.ValidationError(_("a UUID is needed"))
        return found


class WholeField(forms.IntegerField):
    """A whole number in plain digits; int() alone would take “ 5 ”, “1_000” and digits of other scripts."""

    def to_python(self, value: Any) -> Any:
        if value is not None and not (
            value.isascii() and value.removeprefix("-").isdigit() and len(value) <= 20
        ):
            raise forms.ValidationError(_("a whole number is needed"))
        return super().to_python(value)


class AnyOfField(forms.Field):
    """One or more values, each of which has to be right."""

    def __init__(self, *, words: Iterable[str] = (), pattern: Any = None, **more: Any) -> None:
        super().__init__(widget=forms.MultipleHiddenInput(), **more)
        self.words = list(words)
        self.pattern = pattern

    def to_python(self, value: Any) -> Any:
        found = []
        for part in value or []:
            if self.words and part not in self.words:
                raise forms.ValidationError(_("one of %s is needed") % ", ".join(self.words))
            if self.pattern is not None and not self.pattern.fullmatch(part):
                raise forms.ValidationError(_("letters, digits and ._:- only"))
            found.append(part if self.words or self.pattern else parse_uuid(part))
            if found[-1] is None:
                raise forms.ValidationError(_("a UUID is needed"))
        return found


class AgeField(forms.Field):
    """`24h` or `<24h`: younger than that; `>7d`: older."""

    def to_python(self, value: Any) -> Any:
        if value is None:
            return None
        found = narrowing.age(value)
        if found is None or found[1] > narrowing.OLDEST:
            raise forms.ValidationError(_("a length of time like 30m, 24h or >7d is needed"))
        return found


class TagField(forms.CharField):
    """A tag, whole."""

    def clean(self, value: Any) -> Any:
        return _attribute(searching.tag, super().clean(value))


class ArgumentField(forms.CharField):
    """`invoice=INV-17`: an argument that a kind declares, and all of its value."""

    def clean(self, value: Any) -> Any:
        return _attribute(searching.argument, super().clean(value))


def _attribute(read: Callable[[str], Attribute], text: str) -> Attribute | None:
    try:
        return read(text) if text else None
    except Unsearchable as error:
        raise forms.ValidationError(str(error)) from None


class AnyOf(django_filters.Filter):
    """Matches any of the values given."""

    field_class = AnyOfField

    def __init__(self, field_name: str, **more: Any) -> None:
        super().__init__(field_name=field_name, lookup_expr="in", **more)


class Exactly(django_filters.CharFilter):
    """Matches the text given, which is not trimmed."""

    def __init__(self, field_name: str, **more: Any) -> None:
        super().__init__(field_name=field_name, strip=False, max_length=200, **more)


class Since(django_filters.Filter):
    field_class = InstantField


class Uuid(django_filters.Filter):
    field_class = UUIDField


class Whole(django_filters.Filter):
    field_class = WholeField


class Found(django_filters.Filter):
    """By what the index of tags and arguments holds; `longest` is how long it may be said."""

    def __init__(self, field_class: type[forms.Field], longest: int) -> None:
        self.field_class = field_class
        super().__init__(strip=False, max_length=longest, method="by_attribute")


class Age(django_filters.Filter):
    field_class = AgeField


class OneOf(django_filters.CharFilter):
    """Matches one of a few words."""

    field_class = forms.ChoiceField

    def __init__(self, words: Iterable[str], **more: Any) -> None:
        super().__init__(choices=[(word, word) for word in words], **more)


class JobFilter(django_filters.FilterSet):
    """The filters of GET /jobs."""

    id = AnyOf("id", label=gettext_lazy("ids"))
    status = AnyOf("status", words=[s.value for s in JobStatus])
    kind = AnyOf("kind", pattern=handlers.NAME)
    queue = AnyOf("queue", pattern=handlers.QUEUE)
    hold_reason = AnyOf("hold_reason", words=[r.value for r in HoldReason])
    wait_reason = AnyOf("wait_reason", words=[r.value for r in WaitReason])
    error_code = Exactly("error_code")
    unique_key = Exactly("unique_key")
    enqueued_by = Exactly("enqueued_by")
    worker_id = Exactly("worker_id")
    parent_id = Uuid("parent_id")
    priority = Whole("priority", min_value=LEAST_PRIORITY, max_value=MOST_PRIORITY)
    attempts_min = Whole("attempt_count", lookup_expr="gte", min_value=0, max_value=2**31 - 1)
    created_since = Since("created_at", lookup_expr="gte")
    created_before = Since("created_at", lookup_expr="lt")
    finished_since = Since("finished_at", lookup_expr="gte")
    finished_before = Since("finished_at", lookup_expr="lt")
    # The console's words.
    worker = Exactly("worker_id", method="by_worker")
    key = Exactly("unique_key", method="by_key")
    label = Exactly("label", lookup_expr="icontains")
    tag = Found(TagField, search.LONGEST_TAG)
    arg = Found(ArgumentField, searching.LONGEST)
    age = Age("created_at", method="by_age")
    hold = OneOf([narrowing.ANY, *(r.value for r in HoldReason)], method="by_hold")
    parent = Uuid("parent_id")
    q = Exactly("id", method="by_any")

    def by_worker(self, jobs: Any, _name: str, value: str) -> Any:
        return jobs.filter(narrowing.of_worker(value))

    def by_key(self, jobs: Any, _name: str, value: str) -> Any:
        return jobs.filter(narrowing.with_key(value))

    def by_age(self, jobs: Any, _name: str, value: Any) -> Any:
        return jobs.filter(narrowing.of_age(value, clock()))

    def by_hold(self, jobs: Any, _name: str, value: str) -> Any:
        return indexed.held(jobs).filter(narrowing.on_hold(value))

    def by_any(self, jobs: Any, _name: str, value: str) -> Any:
        return jobs.filter(narrowing.anything(value))

    def by_attribute(self, jobs: Any, _name: str, _value: Any) -> Any:
        return jobs  # both together, once all others are applied

    def filter_queryset(self, queryset: Any) -> Any:
        return searching.having(super().filter_queryset(queryset), self.attributes)

    @cached_property
    def attributes(self) -> list[Attribute]:
        """What the jobs are to have, the rarest first."""
        clean = self.form.cleaned_data
        return searching.rarest_first([found for found in (clean["arg"], clean["tag"]) if found])

    def walked(self) -> tuple[Any, Any]:
        """Return the jobs asked for, and the scope to walk them in: all jobs, or the rows of an attribute."""
        if not self.attributes or FEW & set(self.data):
            return self.qs, Job.objects.all()
        jobs = super().filter_queryset(self.queryset.all())
        return searching.having(jobs, self.attributes[1:]), searching.rows(self.attributes[0])

    class Meta:
        model = Job
        fields: list[str] = []


def narrow(jobs: Any, query: QueryDict, **more: Any) -> Any:
    """Return `jobs` narrowed by the query, as `read` takes it."""
    return read(jobs, query, **more).qs


def read(
    jobs: Any, query: QueryDict, *, besides: Iterable[str] = (), by: Any = JobFilter, request: Any = None
) -> Any:
    """Return the filters of a query, which narrow `jobs`; `besides` are names that others read, `by` a set of
    filters, which may ask the `request` who it is.

    Raises Problem naming each parameter that is not known or has a bad value.
    """
    names = by.base_filters
    errors = [
        {
            "parameter": name[:80],
            "detail": _("there is no such parameter; known are %s") % ", ".join([*names, *besides]),
        }
        for name in query
        if name not in names and name not in besides
    ][:20]
    for name in query:
        given = query.getlist(name)
        repeatable = isinstance(names.get(name), AnyOf)
        if "" in given:
            errors.append({"parameter": name[:80], "detail": _("has no value")})
        elif len(given) > (REPEATS if repeatable else 1):
            errors.append({"parameter": name[:80], "detail": _("is given too often")})
    if errors:
        raise Problem("invalid-query", errors=errors)
    filters = by(query, queryset=jobs, request=request)
    if not filters.is_valid():
        raise Problem(
            "invalid-query",
            errors=[
                {"parameter": name, "detail": str(text)}
                for name, texts in filters.errors.items()
                for text in texts
            ],
        )
    return filters


def described(filters: Any) -> dict[str, Schema]:
    """Return what each filter of a set takes, for docs/openapi.yaml."""
    return {name: _described(one) for name, one in filters.base_filters.items()}


def _described(one: django_filters.Filter) -> Schema:
    given = one.extra
    match one:
        case AnyOf():
            words, pattern = given.get("words"), given.get("pattern")
            item = schema.words(words) if words else schema.TEXT if pattern else schema.ID
            return schema.rows(item) | {"minItems": 1, "maxItems": REPEATS}
        case Found():
            return schema.TEXT | {"minLength": 1, "maxLength": given["max_length"]}
        case Whole():
            return {"type": "integer", "minimum": given["min_value"], "maximum": given["max_value"]}
        case Uuid():
            return schema.ID
        case Since():
            return schema.INSTANT
        case Age():
            return schema.TEXT | {"pattern": rf"^\s*{narrowing.AGE.pattern}\s*$"}
        case OneOf():
            return schema.words(word for word, _label in given["choices"])
    return schema.TEXT | {"minLength": 1, "maxLength": 200}


def garbled(query: QueryDict, raw: str) -> None:
    """Refuse a query that is no UTF-8: Django makes U+FFFD of it, and by that a filter finds nothing.

    `raw` is what was sent; U+FFFD itself may be.
    """
    names = [name for name, values in query.lists() if "\ufffd" in name + "".join(values)]
    try:
        parse_qsl(raw if names else "", keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        errors = [{"parameter": name[:80], "detail": _("is no UTF-8")} for name in names[:20]]
        raise Problem("invalid-query", errors=errors) from None


def unknown(query: QueryDict, known: Iterable[str] = ()) -> None:
    """Refuse a query with a name that is not known, or with one twice: the last would count unseen."""
    wrong = {name: _("is given too often") for name, values in query.lists() if len(values) > 1}
    wrong |= {name: _("there is no such parameter") for name in query if name not in known}
    if wrong:
        errors = [{"parameter": name[:80], "detail": detail} for name, detail in wrong.items()]
        raise Problem("invalid-query", errors=errors[:20])
