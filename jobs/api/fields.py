"""Fields that take a JSON type for what it is: no "5" for a number, no 1 for true, no unknown member.

REST framework's own fields convert; a number that was a string in one client and a number in the next is how
two requests with one key come to differ.
"""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from typing import Any, NoReturn

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Between these an instant can be told in every time zone on both databases (bug S66)."""
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

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError({"non_field_errors": [_("An object is needed here.")]})
        unknown = [key for key in data if key not in self.fields]
        if unknown:
            raise serializers.ValidationError(
                {
                    key: [_("There is no such member; known are %s.") % ", ".join(self.fields)]
                    for key in unknown[:20]
                }
            )
        return super().to_internal_value({key: value for key, value in data.items() if value is not None})


class _Typed(serializers.Field[Any, Any, Any, Any]):
    expected: Any = ""

    def refuse(self) -> NoReturn:
        raise serializers.ValidationError(self.expected)

    def to_representation(self, value: Any) -> Any:
        return value


class Text(_Typed):
    """A string; lengths are judged where the job is admitted."""

    expected = _("Text is needed here.")

    def to_internal_value(self, data: Any) -> str:
        return data if isinstance(data, str) else self.refuse()


class Choice(Text):
    """One of a few words."""

    def __init__(self, words: list[str], **more: Any) -> None:
        super().__init__(**more)
        self.words = words

    def to_internal_value(self, data: Any) -> str:
        return data if isinstance(data, str) and data in self.words else self.refuse()

    def refuse(self) -> NoReturn:
        raise serializers.ValidationError(_("One of %s is needed here.") % ", ".join(self.words))


class Whole(_Typed):
    """A whole number."""

    expected = _("A whole number is needed here.")

    def to_internal_value(self, data: Any) -> int:
        return data if type(data) is int and abs(data) < 2**53 else self.refuse()


class Seconds(_Typed):
    """A duration in seconds, fractions allowed."""

    expected = _("A number of seconds is needed here.")

    def to_internal_value(self, data: Any) -> float:
        return float(data) if type(data) in (int, float) and abs(data) < 2**53 else self.refuse()


class Instant(_Typed):
    """An instant with its zone."""

    expected = _("An instant like 2026-01-31T12:00:00Z, from 1970 to before 9000, is needed here.")

    def to_internal_value(self, data: Any) -> datetime:
        return (parse_instant(data) if isinstance(data, str) else None) or self.refuse()


class Id(_Typed):
    """A UUID."""

    expected = _("A UUID is needed here.")

    def to_internal_value(self, data: Any) -> uuid.UUID:
        return (parse_uuid(data) if isinstance(data, str) else None) or self.refuse()


class Object(_Typed):
    """A JSON object with any members."""

    expected = _("An object of named arguments is needed here.")

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return data if isinstance(data, dict) else self.refuse()
