"""Fields that take a JSON type for what it is: no "5" for a number, no 1 for true, no unknown member.

REST framework's own fields convert; a number that was a string in one client and a number in the next is how
two requests with one key come to differ.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers
from rest_framework.fields import empty

from jobs.admission import LONGEST_DELAY
from jobs.api import schema
from jobs.api.schema import Schema

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Between these an instant can be told in every time zone on both databases."""
WRONG = 20
"""Bad items of a list that are told of at a time."""
_INSTANT = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_UUID = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)


def parse_uuid(text: str) -> uuid.UUID | None:
    """Return the UUID of its 36 or 32 characters; None for anything else, braces and urn: included."""
    return uuid.UUID(text) if len(text) in (32, 36) and _UUID.fullmatch(text) else None


def parse_instant(text: str) -> datetime | None:
    """Return an instant of RFC 3339 with its zone, in UTC; None when it is none or lies out of range."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        return None
    zone = "+00:00" if found[3] in "Zz" else found[3]
    try:
        moment = datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if EARLIEST <= moment < LATEST else None


class Strict(serializers.Serializer[Any]):
    """A JSON object whose members are all known; null is the same as not given."""

    @cached_property
    def _members(self) -> dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any] | None]]:
        """What takes a member and what judges it then; read once for all items of a list."""
        return {
            name: (
                field.to_internal_value if isinstance(field, _Typed) else field.run_validation,
                getattr(self, f"validate_{name}", None),
            )
            for name, field in self.fields.items()
        }

    @cached_property
    def _required(self) -> list[str]:
        return [name for name, field in self.fields.items() if field.required]

    def run_validation(self, data: Any = empty) -> Any:
        """Judge the members, then the whole; nothing of ours has defaults or validators besides."""
        if data is None or data is empty:
            nothing, data = self.validate_empty_values(data)
            if nothing:
                return data
        value = self.to_internal_value(data)
        try:
            return self.validate(value)
        except serializers.ValidationError as error:
            raise serializers.ValidationError(serializers.as_serializer_error(error)) from None

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError({"non_field_errors": [_("An object is needed here.")]})
        members = self._members
        if not data.keys() <= members.keys():
            unknown = [key for key in data if key not in members]
            raise serializers.ValidationError(
                {
                    key: [_("There is no such member; known are %s.") % ", ".join(members)]
                    for key in unknown[:20]
                }
            )
        found: dict[str, Any] = {}
        errors: dict[str, Any] = {}
        # Members that are there, and none besides: REST framework's own way asks every field of each of a
        # thousand items what it makes of nothing.
        for name, value in data.items():
            if value is None:
                continue
            take, judge = members[name]
            try:
                taken = take(value)
                found[name] = taken if judge is None else judge(taken)
            except serializers.ValidationError as error:
                errors[name] = error.detail
        for name in self._required:
            if data.get(name) is None:
                errors[name] = [self.fields[name].error_messages["required"]]
        if errors:
            raise serializers.ValidationError({name: errors[name] for name in members if name in errors})
        return found

    @classmethod
    def described(cls) -> Schema:
        """Return what it takes, for docs/openapi.yaml."""
        members, required = {}, []
        for name, field in cls().fields.items():
            told = field.described() if isinstance(field, _Typed | Strict) else {}
            members[name] = told if field.required else schema.maybe(told)
            required += [name] if field.required else []
        return {"type": "object", "properties": members, "additionalProperties": False} | (
            {"required": required} if required else {}
        )


class _Typed(serializers.Field[Any, Any, Any, Any]):
    expected: Any = ""
    schema: ClassVar[Schema] = {}

    def refuse(self) -> NoReturn:
        raise serializers.ValidationError(self.expected)

    def to_representation(self, value: Any) -> Any:
        return value

    def described(self) -> Schema:
        """Return what it takes, for docs/openapi.yaml."""
        return self.schema


class Text(_Typed):
    """A string; without bounds given here, lengths are judged where the job is admitted."""

    expected = _("Text is needed here.")
    schema = schema.TEXT

    def __init__(self, *, least: int = 0, most: int = 0, **more: Any) -> None:
        super().__init__(**more)
        self.least, self.most = least, most

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.refuse()
        if len(data) < self.least:
            raise serializers.ValidationError(_("At least %s characters are needed.") % self.least)
        if self.most and len(data) > self.most:
            raise serializers.ValidationError(_("At most %s characters are taken.") % self.most)
        return data

    def described(self) -> Schema:
        bounds = {"minLength": self.least, "maxLength": self.most}
        return schema.TEXT | {name: bound for name, bound in bounds.items() if bound}


class Shaped(Text):
    """Text that matches `shape` as a whole; `told` says so to whoever gave another."""

    def __init__(self, shape: re.Pattern[str], told: Any, **more: Any) -> None:
        super().__init__(**more)
        self.shape, self.told = shape, told

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not self.shape.fullmatch(text):
            raise serializers.ValidationError(self.told)
        return text

    def described(self) -> Schema:
        return super().described() | {"pattern": f"^{self.shape.pattern}$"}


class Reason(Text):
    """Why a person does it, in his own words."""

    def __init__(self, **more: Any) -> None:
        super().__init__(least=1, most=1000, **more)

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, str) and not data.strip():
            raise serializers.ValidationError(_("Say why, in your own words."))
        return super().to_internal_value(data)

    def described(self) -> Schema:
        return super().described() | {"pattern": r"\S"}


class Choice(Text):
    """One of a few words."""

    def __init__(self, words: Iterable[str], **more: Any) -> None:
        super().__init__(**more)
        self.words = [str(word) for word in words]

    def to_internal_value(self, data: Any) -> str:
        return data if isinstance(data, str) and data in self.words else self.refuse()

    def refuse(self) -> NoReturn:
        raise serializers.ValidationError(_("One of %s is needed here.") % ", ".join(self.words))

    def described(self) -> Schema:
        return schema.words(self.words)


class Whole(_Typed):
    """A whole number."""

    expected = _("A whole number is needed here.")

    def __init__(self, *, least: int = 1 - 2**53, most: int = 2**53 - 1, **more: Any) -> None:
        super().__init__(**more)
        self.least, self.most = least, most

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.refuse()
        if not self.least <= data <= self.most:
            bounds = {"least": self.least, "most": self.most}
            raise serializers.ValidationError(_("From %(least)s to %(most)s.") % bounds)
        return data

    def described(self) -> Schema:
        return schema.WHOLE | {"minimum": self.least, "maximum": self.most}


class Seconds(_Typed):
    """A duration of 0 to `most` seconds, fractions allowed."""

    expected = _("A number of seconds is needed here.")

    def __init__(self, *, most: float = LONGEST_DELAY, **more: Any) -> None:
        super().__init__(**more)
        self.most = most

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            self.refuse()
        if not 0 <= data <= self.most:
            raise serializers.ValidationError(_("From 0 to %s seconds.") % f"{self.most:.0f}")
        return float(data)

    def described(self) -> Schema:
        return {"type": "number", "minimum": 0, "maximum": self.most}


class Flag(_Typed):
    """True or false."""

    expected = _("true or false is needed here.")
    schema = schema.FLAG

    def to_internal_value(self, data: Any) -> bool:
        return data if isinstance(data, bool) else self.refuse()


class Instant(_Typed):
    """An instant with its zone."""

    expected = _("An instant like 2026-01-31T12:00:00Z, from 1970 to before 9000, is needed here.")
    schema = schema.INSTANT

    def to_internal_value(self, data: Any) -> datetime:
        return (parse_instant(data) if isinstance(data, str) else None) or self.refuse()


class Id(_Typed):
    """A UUID."""

    expected = _("A UUID is needed here.")
    schema = schema.ID

    def to_internal_value(self, data: Any) -> uuid.UUID:
        return (parse_uuid(data) if isinstance(data, str) else None) or self.refuse()


class Object(_Typed):
    """A JSON object with any members."""

    expected = _("An object of named arguments is needed here.")
    schema = schema.OBJECT

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return data if isinstance(data, dict) else self.refuse()


class Several(_Typed):
    """A list of `least` to `most` values of one field, or objects of one form."""

    expected = _("A list is needed here.")

    def __init__(self, item: _Typed | Strict, *, most: int, least: int = 1, **more: Any) -> None:
        super().__init__(**more)
        self.item, self.most, self.least = item, most, least

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            self.refuse()
        if not self.least <= len(data) <= self.most:
            bounds = {"least": self.least, "most": self.most}
            raise serializers.ValidationError(_("%(least)s to %(most)s are taken at a time.") % bounds)
        found: list[Any] = []
        errors: dict[str, Any] = {}
        for index, part in enumerate(data):
            try:
                found.append(self.item.run_validation(part))
            except serializers.ValidationError as error:
                errors[str(index)] = error.detail
                if len(errors) == WRONG:
                    break
        if errors:
            raise serializers.ValidationError(errors)
        return found

    def described(self) -> Schema:
        return schema.rows(self.item.described()) | {"minItems": self.least, "maxItems": self.most}


class Anything(_Typed):
    """Any JSON value."""

    def to_internal_value(self, data: Any) -> Any:
        return data
