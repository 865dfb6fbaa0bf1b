"""The drain: whether the cluster may be stopped now, and what stands in the way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console import wording
from console.pages.base import Page
from jobs.models import Case
from jobs.money import money
from jobs.operations import drain
from jobs.operations.drain import Checklist, Part, Verdict

ICONS = {Verdict.SAFE: ("check", "ok"), Verdict.WAIT: ("clock", "warn"), Verdict.BLOCKED: ("x", "bad")}


@dataclass(frozen=True)
class Check:
    """One line of the checklist as the page shows it."""

    part: Part
    name: str
    clears: str
    more: str = ""

    @property
    def icon(self) -> str:
        """Its verdict's shape."""
        return ICONS[self.part.verdict][0]

    @property
    def colour(self) -> str:
        """Its verdict's colour."""
        return ICONS[self.part.verdict][1]


@dataclass(frozen=True)
class Blocking:
    """One row that stands in the way. `clears` is when it does so by itself, None where a person must."""

    name: str
    url: str
    icon: str
    blocks: str
    stands: str
    clears: datetime | None
    by_person: bool


class DrainPage(Page):
    """The checklist, live."""

    template_name = "console/drain/page.html"
    folder = "console/drain"
    regions = ("checklist",)

    def page(self) -> dict[str, Any]:
        """Return the title."""
        return {"title": gettext_lazy("Drain")}

    def checklist(self) -> dict[str, Any]:
        """Return the verdict, each part of it, and the rows that stand in the way."""
        found = drain.look(version=self.request.GET.get("version", ""))
        names, clears = _names(), _clears()
        if found.claims_open:
            names["claims"] = _("Claims are open")
        more = {"versions": _most(found)}
        checks = [
            Check(p, names[p.name], clears[p.name] if p.count else "", more.get(p.name, ""))
            for p in found.parts
        ]
        icon, colour = ICONS[found.verdict]
        return {
            "found": found,
            "verdict_icon": icon,
            "verdict_colour": colour,
            "sentence": _sentence(found),
            "checks": checks,
            "rows": self._rows(found),
            "cut": any(p.count > len(p.rows) for p in found.parts),
            "scheduler": self.around.scheduler,
        }

    def _rows(self, found: Checklist) -> list[Blocking]:
        effects = {row["id"] for p in found.parts if p.name in ("unknown", "executing") for row in p.rows}
        open_cases = Case.objects.filter(effect_id__in=effects, closed_at=None)
        known = open_cases.only("id", "effect_id", "owner", "owned_until", "closed_at")
        cases = {case.effect_id: case for case in known}
        parts = sorted(found.parts, key=lambda p: p.verdict is not Verdict.BLOCKED)
        now = self.around.now
        return [_blocking(p, row, cases, now) for p in parts if p.name != "claims" for row in p.rows]


def _blocking(part: Part, row: dict[str, Any], cases: dict[Any, Case], now: datetime) -> Blocking:
    by_person = part.verdict is Verdict.BLOCKED
    short = wording.short_worker
    if part.name in ("unknown", "executing"):
        case = cases.get(row["id"])
        amount = money(row["amount"], row["currency"])
        what = row["label"] or f"{row['kind']} {wording.short_id(row['job_id'])}"
        name = ", ".join(text for text in (what, amount) if text)
        url = reverse("admin:case", args=[case.id]) if case else reverse("admin:job", args=[row["job_id"]])
        who = case.owner_at(now) if case else ""
        owner = _("%(who)s has the case") % {"who": who} if who else ""
        nobody = _("nobody has taken the case") if case else _("its inquiry, or a case, comes next")
        stands = _("its attempt still runs") if part.name == "executing" else owner or nobody
        blocks = wording.words()[part.name]
        return Blocking(name, url, part.name, blocks, stands, None, by_person)
    if part.name == "workers":
        stands = _("fenced") if row["fenced_at"] else _("of epoch %(n)s") % {"n": row["scheduler_epoch"]}
        return Blocking(
            short(row["id"]),
            reverse("admin:workers"),
            "n-workers",
            _("still beating"),
            stands,
            None,
            by_person,
        )
    if part.name == "versions":
        url, name = reverse("admin:workers"), short(row["id"])
        return Blocking(name, url, "n-workers", _("another version"), row["version"], None, by_person)
    if part.name == "staged":
        url = reverse("admin:job", args=[row["job_id"]])
        name = wording.short_id(row["job_id"])
        return Blocking(name, url, "running", _("staged result"), short(row["worker_id"]), None, by_person)
    url = reverse("admin:job", args=[row["id"]])
    name = f"{row['kind']} {wording.short_id(row['id'])}"
    if part.name == "uncertain":
        return Blocking(name, url, "uncertain", _("uncertain job"), row["label"], None, by_person)
    blocks = _("lease") if part.name == "leases" else _("lease in quarantine")
    stands = short(row["worker_id"] or "")
    return Blocking(
        name, url, "running", blocks, stands, None if by_person else row["lease_expires_at"], by_person
    )


def _sentence(found: Checklist) -> str:
    """Return the verdict in words: how much is left, what time does and what it does not."""
    left = [p for p in found.parts if p.verdict is not Verdict.SAFE]
    if not left:
        return _("Everything is at zero. Stop the workers.")
    if not found.claims_open and found.verdict is Verdict.WAIT:
        text = ngettext(
            "%(left)s of %(all)s checks is not at zero. Time alone clears it; this page watches.",
            "%(left)s of %(all)s checks are not at zero. Time alone clears them; this page watches.",
            len(left),
        )
    elif found.claims_open and len(left) == 1:
        text = _("Nothing runs, but claims are open: a worker may take the next job at any moment.")
    else:
        text = ngettext(
            "%(left)s of %(all)s checks is not at zero, and time alone does not clear it.",
            "%(left)s of %(all)s checks are not at zero, and time alone does not clear all of them.",
            len(left),
        )
    return text % {"left": len(left), "all": len(found.parts)}


def _most(found: Checklist) -> str:
    """Return how many workers are of the version that they should be."""
    versions = found.versions
    return (
        _("%(n)s of %(all)s are %(version)s.")
        % {"n": versions.right, "all": versions.all, "version": versions.wanted}
        if versions.all
        else ""
    )


def _names() -> dict[str, str]:
    return {
        "claims": _("Claims closed"),
        "leases": _("Leases"),
        "quarantined": _("Quarantined while running"),
        "staged": _("Staged, not committed"),
        "executing": _("Effects being sent"),
        "unknown": _("Unknown effects"),
        "uncertain": _("Uncertain jobs"),
        "workers": _("Old or fenced workers"),
        "versions": _("Workers of another version"),
    }


def _clears() -> dict[str, str]:
    return {
        "claims": _("a person closes them"),
        "leases": _("they end by themselves, or run out"),
        "quarantined": _("a person lifts the hold"),
        "staged": _("their attempts commit or end"),
        "executing": _("the answer, or the end of the attempt"),
        "unknown": _("a ruling or a definite inquiry, never time"),
        "uncertain": _("their open effects are settled"),
        "workers": _("they read the new epoch, or stop"),
        "versions": _("they are stopped"),
    }
