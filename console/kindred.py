"""What else bears on a case: cases like it and how they ended, and what its job has done besides."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _

from console import wording
from jobs.models import Case, EffectSlot, Job, Ruling
from jobs.models.case import ClosedAs
from jobs.operations.cases import View

LIKE, SHOWN, OTHERS = 50, 5, 10
"""So many cases alike are summed up, so many of them shown, so many of the other rows of the job."""


SAID = ("id", "effect_kind", "label", "amount", "currency", "cause", "opened_at", "closed_at", "closed_as")
RULED = ("case_id", "verdict", "by", "approved_by", "reason")
"""What is read of a case and of a ruling: fifty whole rows of each would be a seventh of the page's time."""


@dataclass(frozen=True)
class Kindred:
    """One case like this, and its end: `case` and `ruling` hold what `SAID` and `RULED` name."""

    case: Any
    ruling: Any
    end: str
    took: timedelta | None


def closed_words() -> dict[str, str]:
    """Return how a case may end, in the reader's language."""
    return {
        ClosedAs.RULED: _("ruled"),
        ClosedAs.RESOLVED: _("settled by evidence"),
        ClosedAs.MOOT: _("moot: nothing depended on it"),
    }


def like(case: Case) -> dict[str, Any]:
    """Return the newest cases of the same effect kind, and the sums of how they ended, in two queries."""
    found = list(
        Case.objects.filter(effect_kind=case.effect_kind, kind=case.kind)
        .exclude(pk=case.pk)
        .order_by("-id")
        .values_list(*SAID, named=True)[:LIKE]
    )
    ruled = Ruling.objects.filter(case__in=[c.id for c in found]).order_by("id")
    rulings = {r.case_id: r for r in ruled.values_list(*RULED, named=True)}
    verdicts, closed, still = wording.verdicts(), closed_words(), _("still open")
    rows = []
    for c in found:
        ruling = rulings.get(c.id)
        end = verdicts.get(ruling.verdict, ruling.verdict) if ruling else closed.get(c.closed_as, still)
        rows.append(Kindred(c, ruling, end, c.closed_at - c.opened_at if c.closed_at else None))
    return {"rows": rows[:SHOWN], "sums": Counter(row.end for row in rows).most_common(), "of": len(rows)}


def of_job(view: View) -> dict[str, Any]:
    """Return the job's other effects and cases, its parent and its children, each bounded."""
    job = view.job
    return {
        "effects": list(
            EffectSlot.objects.filter(job=job)
            .exclude(pk=view.effect.pk)
            .defer("payload", "response", "conflict_payload")
            .order_by("-created_at")[:OTHERS]
        ),
        "cases": list(Case.objects.filter(job=job).exclude(pk=view.case.pk).order_by("-id")[:OTHERS]),
        "parent": Job.objects.filter(pk=job.parent_id).only("id", "kind", "label", "status").first()
        if job.parent_id
        else None,
        "children": list(
            Job.objects.filter(parent=job.pk).only("id", "kind", "label", "status").order_by("-id")[:OTHERS]
        ),
    }
