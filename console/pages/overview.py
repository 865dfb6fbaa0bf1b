"""The overview: what needs a person now, before any chart; then the proof of the fence; then the flow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console import charts, environment, figures, needs, questions, wording
from console.charts import Chart
from console.figures import Bin
from console.pages.base import Page
from console.pressing import LATE, READ, Matter
from jobs.drills import kept
from jobs.ledger import counts
from jobs.ledger.standby import standby
from jobs.models import FenceRefusal, Job
from jobs.models.drill import DrillKind
from jobs.money import money
from jobs.operations.actor import APPROVE
from jobs.operations.approvals import ANYBODY, ME

REFUSAL = ("point", "reason", "worker_id", "at", "job_id")
"""What is told of the last refusal."""
DAY = timedelta(hours=24)
OPENED = 1000
"""Cases of a day that are looked at: beyond that it was a day of very many."""
RANGES = {"1h": 1, "24h": 24, "7d": 7 * 24}
EVENTS = (
    ("unknown", gettext_lazy("Outcomes unknown"), "bunk"),
    ("refused", gettext_lazy("Writes refused by the fence"), "bbad"),
)


class OverviewPage(Page):
    """Where every shift begins."""

    template_name = "console/overview/page.html"
    folder = "console/overview"
    regions = ("needs", "proof", "flow")

    def page(self) -> dict[str, Any]:
        """Return the title."""
        return {"title": _("Overview")}

    def alone(self, region: str) -> str:
        """With what needs a person goes the sentence in the head of the page that sums it up."""
        return "console/overview/needs_alone.html" if region == "needs" else super().alone(region)

    @cached_property
    def chain(self) -> needs.Chain:
        """What is known of the audit chain."""
        return needs.chain()

    @cached_property
    def sees_cases(self) -> bool:
        """Whether the person may see cases."""
        return self.request.user.has_perm("jobs.view_case")

    def needs(self) -> dict[str, Any]:
        """Return what stands still until somebody acts, and whether there is any job at all."""
        user, asked = self.request.user, []
        answers = user.has_perm(APPROVE)
        if self.sees_cases:
            # Who may approve is told what waits for his word; anybody else, what waits for anybody's.
            asked = questions.mine(self.request) if answers else questions.every(self.request)
        found = needs.read(self.around, self.chain, cases=self.sees_cases, questions=asked)
        return {
            "needs": found,
            "waiting": ME if answers else ANYBODY,
            "summary": summary(found.matters),
            "shown": needs.SHOWN,
            "first_job": Job.objects.order_by("-id").values_list("id").first() is None,
        }

    def proof(self) -> dict[str, Any]:
        """Return the fence coverage, the state of the cluster and what became of the cases of a day."""
        scheduler, epochs = self.around.scheduler, self.around.live_epochs
        return {
            "coverage": figures.coverage(self.around.now),
            "last_refusal": FenceRefusal.objects.only(*REFUSAL).order_by("-id").first(),
            "drill": kept.last_finished(DrillKind.ZOMBIE, recorded=False),
            "scheduler": scheduler,
            "database": environment.database(),
            "standby": standby(DEFAULT_DB_ALIAS),
            "chain": self.chain,
            "day": counts.cases_since(DEFAULT_DB_ALIAS, self.around.now - DAY, most=OPENED)
            if self.sees_cases
            else None,
            "opened_most": OPENED,
            "live_workers": len(epochs),
            "old_workers": sum(epoch < scheduler.epoch for epoch in epochs),
        }

    def flow(self) -> dict[str, Any]:
        """Return the charts of the range that the address names."""
        name = self.request.GET.get("range", "1h")
        name = name if name in RANGES else "1h"
        bins = figures.flow(self.around.now, hours=RANGES[name])
        return {
            "range": name,
            "ranges": list(RANGES),
            "charts": [
                commits(bins),
                latency(bins),
                *(events(bins, *kind) for kind in EVENTS),
                contention(bins),
                retries(bins),
            ],
        }


def summary(matters: Sequence[Matter]) -> str:
    """Return what the open cases come to, in a sentence or two; empty where none is open."""
    # A case whose ruling waits for a second person is counted by its own kind.
    n = sum(matter.count - matter.rulings for matter in matters)
    if not n:
        return ""
    late = sum(matter.count for matter in matters if matter.what == LATE)
    said = {"n": f"{READ:,}+" if n >= READ else f"{n:,}", "late": f"{late:,}"}
    if late:
        text = ngettext(
            "%(n)s case needs a person, %(late)s past its SLA.",
            "%(n)s cases need a person, %(late)s past their SLA.",
            n,
        )
    else:
        text = ngettext("%(n)s case needs a person.", "%(n)s cases need a person.", n)
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for matter in matters:
        for currency, amount in matter.unknown.items():
            sums[currency] += amount
    if not sums:
        return text % said
    unknown = ", ".join(money(amount, currency) for currency, amount in sorted(sums.items()))
    stake = _("%(sums)s of unknown outcome.") % {"sums": unknown}
    return f"{text % said} {stake}"


def commits(bins: list[Bin]) -> Chart:
    """Return the chart of canonical commits per minute."""
    minutes = (_end(bins) - bins[-1].start) // timedelta(minutes=1)
    values = [part.commits / minutes for part in bins]
    top = charts.nice(max(values))
    total = sum(part.commits for part in bins)
    now, low, high = values[-1], min(values), max(values)
    return Chart(
        name="commits",
        title=_("Commits per minute"),
        headline=_rate(now),
        description=ngettext(
            "%(total)s commit in all; %(now)s per minute at the end, between %(low)s and %(high)s.",
            "%(total)s commits in all; %(now)s per minute at the end, between %(low)s and %(high)s.",
            total,
        )
        % {"total": f"{total:,}", "now": _rate(now), "low": _rate(low), "high": _rate(high)},
        ticks=charts.axis(top, _rate),
        times=charts.times([part.start for part in bins], _end(bins)),
        areas=[("a1", charts.area(values, top))],
        lines=[("l1", charts.line(values, top))],
        empty=not total,
    )


def latency(bins: list[Bin]) -> Chart:
    """Return the chart of the time from due to canonical commit."""
    whole = figures.merged(part.latency for part in bins)
    p50, p95 = figures.percentile(whole, 0.5), figures.percentile(whole, 0.95)
    middle = [figures.percentile(part.latency, 0.5) for part in bins]
    slow = [figures.percentile(part.latency, 0.95) for part in bins]
    top = charts.nice(max((v for v in slow if v is not None), default=0))
    said = {"p50": _seconds(p50), "p95": _seconds(p95)}
    return Chart(
        name="latency",
        title=_("Pending to commit"),
        headline="",
        note=_("%(p50)s p50 solid, %(p95)s p95 dashed") % said if p50 is not None else "",
        description=_(
            "Half of the jobs were committed within %(p50)s of being due, 95 of 100 within %(p95)s."
        )
        % said
        if p50 is not None
        else _("No job was committed."),
        ticks=charts.axis(top, _seconds),
        times=charts.times([part.start for part in bins], _end(bins)),
        lines=[("l1", charts.line(middle, top)), ("l2", charts.line(slow, top))],
        empty=p50 is None,
    )


def contention(bins: list[Bin]) -> Chart:
    """Return the chart of the share of claims that found nothing: others were quicker."""
    claims, found_nothing = sum(part.claims for part in bins), sum(part.empty for part in bins)
    values = [100 * part.empty / part.claims if part.claims else None for part in bins]
    top = max(4.0, charts.nice(max((v for v in values if v is not None), default=0)))
    share = _share(100 * found_nothing / claims) if claims else ""
    return Chart(
        name="contention",
        title=_("Claim contention"),
        headline=share,
        description=ngettext(
            "Of %(n)s claim that a sign of work prompted, %(share)s found nothing.",
            "Of %(n)s claims that a sign of work prompted, %(share)s found nothing.",
            claims,
        )
        % {"n": f"{claims:,}", "share": share}
        if claims
        else _("No sign of work prompted a claim."),
        ticks=charts.axis(top, _share),
        times=charts.times([part.start for part in bins], _end(bins)),
        lines=[("l1", charts.line(values, top))],
        empty=not claims,
    )


def events(bins: list[Bin], name: str, title: Any, bar_class: str) -> Chart:
    """Return the chart of something that had better not happen: bars, and their sum."""
    values = _thirds([getattr(part, name) for part in bins])
    total = f"{sum(values):,}"
    top = max(2.0, charts.nice(max(values)))
    return Chart(
        name=name,
        title=str(title),
        headline=total,
        description=_("%(total)s in all, at most %(high)s in one bar.")
        % {"total": total, "high": _rate(max(values))},
        ticks=charts.axis(top, _rate),
        times=charts.times([part.start for part in bins], _end(bins)),
        bars=[(bar_class, charts.bars(values, top))],
    )


def retries(bins: list[Bin]) -> Chart:
    """Return the chart of attempts whose job went on to another one, and of those that were its last."""
    again, last = _thirds([part.retries for part in bins]), _thirds([part.failed for part in bins])
    both = [a + b for a, b in zip(again, last, strict=True)]
    top = max(2.0, charts.nice(max(both)))
    said = {"retries": f"{sum(again):,}", "failed": f"{sum(last):,}", "high": _rate(max(both))}
    return Chart(
        name="retries",
        title=_("Retries"),
        headline=said["retries"],
        note=ngettext("%(failed)s failed for good", "%(failed)s failed for good", sum(last)) % said
        if any(last)
        else "",
        description=ngettext(
            "%(retries)s attempt failed or lost its lease and its job was tried again; %(failed)s failed for"
            " good. At most %(high)s in one bar.",
            "%(retries)s attempts failed or lost their lease and their job was tried again; %(failed)s failed"
            " for good. At most %(high)s in one bar.",
            sum(again),
        )
        % said,
        ticks=charts.axis(top, _rate),
        times=charts.times([part.start for part in bins], _end(bins)),
        bars=[("b0", charts.bars(again, top)), ("bbad", charts.bars(last, top, upon=again))],
    )


def _thirds(values: list[int]) -> list[int]:
    """Return one bar for three bins: thinner ones cannot be told apart."""
    return [sum(values[n : n + 3]) for n in range(0, len(values), 3)]


def _end(bins: list[Bin]) -> Any:
    return bins[-1].start + (bins[-1].start - bins[-2].start)


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _share(value: float) -> str:
    return f"{value:.0f} %" if value >= 10 or value == int(value) else f"{value:.1f} %"


def _seconds(value: float | None) -> str:
    return "0" if not value else wording.span(value)
