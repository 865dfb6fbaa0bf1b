"""The hand-over report: what the next shift finds open, and what the last one has decided; to be printed."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext_lazy as _

from console import bounded, casefile, inbox, ranking
from console.pages.base import Page
from jobs import narrowing
from jobs.models import AuditEntry, AuditHead, Case, Comment, Ruling

SHIFTS = {"8": 8, "12": 12, "24": 24}
"""Hours that a shift may have been long."""
SHOWN = 30
READ = 2000
"""Newest entries of the audit that are looked at: it has no index by time."""
CASE = ("case__label", "case__effect_kind", "case__amount", "case__currency")
RULED = ("verdict", "reference", "reason", "by", "approved_by", "at")
SAID = ("by", "text", "at")
"""What the report says of each."""


class HandoverPage(Page):
    """One page of paper for whoever comes next."""

    template_name = "console/handover.html"

    def page(self) -> dict[str, Any]:
        """Return the open cases in their order, and what the shift ruled, said and did; each bounded."""
        now, hours = self.around.now, self.request.GET.get("hours", "8")
        hours = hours if hours in SHIFTS else "8"
        since = now - timedelta(hours=SHIFTS[hours])
        stretch = inbox.read(inbox.open_cases(), now=now, size=SHOWN)
        rulings = Ruling.objects.select_related("case").only(*RULED, *CASE).order_by("-id")[: SHOWN + 1]
        comments = Comment.objects.select_related("case").only(*SAID, *CASE).order_by("-id")[: SHOWN + 1]
        ruled = [ruling for ruling in rulings if ruling.at >= since]
        said = [comment for comment in comments if comment.at >= since]
        return {
            "title": _("Hand-over"),
            "hours": hours,
            "shifts": list(SHIFTS),
            "since": since,
            "stretch": stretch,
            **_set_aside(now),
            "ruled": ruled[:SHOWN],
            "verdicts": Counter(ruling.verdict for ruling in ruled[:SHOWN]).most_common(),
            "said": said[:SHOWN],
            "done": (done := _done(since, now))[:SHOWN],
            "shown": SHOWN,
            "more": len(done) > SHOWN or len(ruled) > SHOWN or len(said) > SHOWN or bool(stretch.next),
        }


@dataclass(frozen=True)
class Done:
    """What somebody did beside ruling, and to which case."""

    case: Case
    line: casefile.Happened


def _done(since: datetime, now: datetime) -> list[Done]:
    """Return who took, parked and asked, newest first, among the newest entries of the audit."""
    newest = AuditHead.objects.values_list("seq", flat=True).first() or 0
    acts = [act for act in casefile.ACTS if act != "reveal"]
    entries = AuditEntry.objects.filter(
        seq__gt=newest - READ, object_type="case", action__in=acts, at__gte=since
    )
    found = list(
        entries.only("at", "actor", "action", "reason", "after", "object_id").order_by("-seq")[: SHOWN + 1]
    )
    cases = Case.objects.only("label", "effect_kind").in_bulk([uuid.UUID(entry.object_id) for entry in found])
    there = [(cases.get(uuid.UUID(entry.object_id)), entry) for entry in found]
    return [Done(case, casefile.told(entry, now)) for case, entry in there if case is not None]


def _set_aside(now: datetime) -> dict[str, bounded.Count]:
    """Count the cases that somebody has taken and those that are parked, among the oldest that are ranked."""
    taken, parked = ~narrowing.case_of("nobody", "", now), narrowing.case_parked("yes", now)
    found = (
        inbox.open_cases()
        .order_by("opened_at")[: ranking.READ + 1]
        .aggregate(
            all=Count("id"),
            taken=Count("id", filter=taken),
            parked=Count("id", filter=parked),
        )
    )
    more = found["all"] > ranking.READ
    return {name: bounded.Count(found[name], more) for name in ("taken", "parked")}
