"""The audit: what people did, sealed in a chain; newest first, each with what it changed."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from console import history, wording
from console.filters import AuditFilter
from console.pages.base import Page
from jobs import chain
from jobs.models import AuditEntry, AuditHead

SIZE = 50
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00")
LONGEST = 300
"""Characters shown of one value."""


@dataclass(frozen=True)
class Changed:
    """One value that an act changed; None where there was, or is, none."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Row:
    """One entry as the page shows it; `sound`: its seal is the seal of what it says."""

    entry: AuditEntry
    verb: str
    door: str
    changes: list[Changed]
    sound: bool


class AuditPage(Page):
    """The chain's entries."""

    template_name = "console/audit/page.html"
    folder = "console/audit"
    regions = ("table",)

    @cached_property
    def filters(self) -> AuditFilter:
        """The filters that the address names."""
        return AuditFilter(self.request.GET, AuditEntry.objects.all())

    @cached_property
    def problems(self) -> list[tuple[str, str]]:
        """What of the address cannot be applied; then nothing is listed."""
        return self.filters.problems()

    def page(self) -> dict[str, Any]:
        """Return the filters."""
        return {"title": _("Audit"), "filters": self.filters}

    def table(self) -> dict[str, Any]:
        """Return one page of the chain, and what is known of the whole of it."""
        head = AuditHead.objects.first()
        if self.problems:
            return {"http_status": 400, "head": head, "problems": self.problems}
        before = self.filters.form.cleaned_data["before"]
        found = self._found(before, SIZE + 1)
        rows = found[:SIZE]
        kept = [(name, value) for name, values in self.filters.active() for value in values]
        return {
            "head": head,
            "rows": [row_of(entry) for entry in rows],
            "filtered": bool(kept),
            "on_first": before is None,
            "first_url": "?" + urlencode(kept),
            "export_url": f"{reverse('admin:audit-export')}?{urlencode(kept)}",
            "older_url": "?" + urlencode([*kept, ("before", rows[-1].seq)]) if len(found) > SIZE else "",
        }

    def _found(self, before: int | None, most: int) -> list[AuditEntry]:
        entries = self.filters.qs
        if before is not None:
            entries = entries.filter(seq__lt=before)
        return list(entries.order_by("-seq")[:most])


def row_of(entry: AuditEntry) -> Row:
    """Return an entry with what it changed, and whether its seal is its own."""
    return Row(
        entry,
        history.said(entry.action),
        wording.doors().get(entry.source, entry.source),
        _changes(entry),
        chain.sound(entry),
    )


def _changes(entry: AuditEntry) -> list[Changed]:
    """Return what differs between before and after; what only one of them names was added or taken away."""
    was, now = _read(entry.before), _read(entry.after)
    return [
        Changed(name, _text(was, name), _text(now, name))
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name) or (name in was) != (name in now)
    ]


def _read(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:  # tampered with: the page that shows it must stand
        value = text
    return value if isinstance(value, dict) else {} if value is None else {"": value}


def _text(values: dict[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value in (None, ""):
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if _INSTANT.fullmatch(text):
        # What people typed is among the values, and need not be an instant because it looks like one.
        with suppress(ValueError):
            return wording.stamp(datetime.fromisoformat(text))
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
