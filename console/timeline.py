"""A job's timeline: a lane for each attempt with real times, one for each effect, and what was refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.axis import RIGHT, Axis, Fold, Interval, Mark
from console.wording import clock, span, words
from jobs.models import Attempt, EffectSlot, FenceRefusal, Job
from jobs.status import AttemptStatus, EffectStatus, JobStatus

LANE = 36
TOP = 32
ATTEMPTS, EFFECTS = 8, 4
BEATLESS = timedelta(seconds=30)
CLASSES = {
    "committed": "st-ok",
    "failed": "st-bad",
    "lost": "st-warn",
    "uncertain": "st-unk",
    "unknown": "st-unk",
    "running": "st-run",
    "executing": "st-run",
}


@dataclass(frozen=True)
class Words:
    """Text on the chart; `anchor` is the SVG's class for its side."""

    x: float
    y: float
    text: str
    kind: str = "w"
    anchor: str = ""


@dataclass
class Lane:
    """One row of the chart: bars are (x, width, dashed?), points are (x, filled?, dashed?)."""

    name: str
    y: float
    status_class: str
    below: str = ""
    bars: list[tuple[float, float, bool]] = field(default_factory=list)
    points: list[tuple[float, bool, bool]] = field(default_factory=list)
    join: str = ""
    fences: list[float] = field(default_factory=list)
    fence_words: Words | None = None
    words: list[Words] = field(default_factory=list)


@dataclass
class Timeline:
    """What the template draws."""

    height: int
    lanes: list[Lane]
    marks: list[Mark]
    folds: list[tuple[Fold, str, str]]
    axis: str
    description: str
    hidden: int

    @property
    def middle(self) -> int:
        """Half way down, where words stand upright in folded time."""
        return (self.height + 16) // 2


def draw(
    job: Job,
    attempts: Sequence[Attempt],
    slots: Sequence[EffectSlot],
    refusals: Sequence[FenceRefusal],
    now: datetime,
) -> Timeline | None:
    """Return the timeline of the newest attempts (given oldest first), or None before the first."""
    shown = list(attempts)[-ATTEMPTS:]
    if not shown:
        return None
    before = max(job.attempt_count, len(attempts)) - len(shown)
    effects = [s for s in slots if s.created_at >= shown[0].started_at][:EFFECTS]
    late = _by_attempt(refusals, shown)
    axis = Axis(_busy(job, shown, effects, late, now, whole=not before))
    lanes: list[Lane] = []
    for number, attempt in enumerate(shown, start=before + 1):
        lane = _attempt_lane(axis, job, attempt, number, TOP + LANE * len(lanes), now)
        _add_refusals(axis, lane, late.get(attempt.id, []))
        lanes.append(lane)
    for slot in effects:
        lanes.append(_effect_lane(axis, slot, TOP + LANE * len(lanes)))
    return Timeline(
        height=TOP + LANE * len(lanes) + 6,
        lanes=lanes,
        marks=axis.marks(),
        folds=[(f, span(f.end - f.start), _idle(f, job, shown)) for f in axis.folds],
        axis=axis.line(),
        description=_describe(shown, before, late, now),
        hidden=before,
    )


def _busy(
    job: Job,
    attempts: Sequence[Attempt],
    slots: Sequence[EffectSlot],
    late: dict[object, list[FenceRefusal]],
    now: datetime,
    *,
    whole: bool,
) -> list[Interval]:
    busy = [(a.started_at, a.finished_at or _end_of_running(job, now)) for a in attempts]
    busy += [(r.at, r.at) for refusals in late.values() for r in refusals]
    busy += [(m, m) for s in slots for m in (s.created_at, s.granted_at, s.changed_at) if m]
    if whole:
        busy.append((job.created_at, job.created_at))
    return [(start, max(start, end)) for start, end in busy]


def _end_of_running(job: Job, now: datetime) -> datetime:
    return max(now, job.lease_expires_at) if job.lease_expires_at else now


def _by_attempt(
    refusals: Sequence[FenceRefusal], attempts: Sequence[Attempt]
) -> dict[object, list[FenceRefusal]]:
    known = {a.id for a in attempts}
    found: dict[object, list[FenceRefusal]] = defaultdict(list)
    for refusal in sorted(refusals, key=lambda r: r.at):
        if refusal.attempt_id in known:
            found[refusal.attempt_id].append(refusal)
    return found


def _attempt_lane(axis: Axis, job: Job, attempt: Attempt, number: int, y: float, now: datetime) -> Lane:
    lane = Lane(_("Attempt %(n)s") % {"n": number}, y, CLASSES.get(attempt.status, ""))
    start = axis.place(attempt.started_at)
    if attempt.finished_at is None:
        _running(axis, lane, job, attempt, now)
        return lane
    end = axis.place(attempt.finished_at)
    lane.bars.append((start, max(4.0, round(end - start, 1)), attempt.status == AttemptStatus.LOST))
    status = words().get(attempt.status, attempt.status)
    text = f"{status} {clock(attempt.finished_at, now)}"
    if attempt.status == AttemptStatus.LOST:
        text = _("lost, taken back %(at)s") % {"at": clock(attempt.finished_at, now)}
    lane.words.append(_beside(axis, text, start, max(end, start + 4), y + 14))
    return lane


def _running(axis: Axis, lane: Lane, job: Job, attempt: Attempt, now: datetime) -> None:
    """Draw what is known to have run, and dashed what is only leased or no longer heard of."""
    start = axis.place(attempt.started_at)
    beat = job.heartbeat_at or attempt.started_at
    heard = now if now - beat < BEATLESS else max(beat, attempt.started_at)
    mid, lease_end = axis.place(heard), job.lease_expires_at or now
    lane.bars.append((start, max(4.0, round(mid - start, 1)), False))
    end = axis.place(max(lease_end, heard))
    if end - mid >= 2:
        lane.bars.append((mid, round(end - mid, 1), True))
    silent = heard < now
    text = (_("no beat, lease ends %(at)s") if silent else _("running, lease until %(at)s")) % {
        "at": clock(lease_end, now)
    }
    if silent:
        lane.status_class = CLASSES["lost"]
    lane.words.append(_beside(axis, text, start, end, lane.y + 14))


def _add_refusals(axis: Axis, lane: Lane, refusals: Sequence[FenceRefusal]) -> None:
    if not refusals:
        return
    places = [axis.place(r.at) for r in refusals]
    lane.fences = sorted({round(x / 16) * 16.0 for x in places})
    n = len(refusals)
    text = ngettext("%(n)s write refused", "%(n)s writes refused", n) % {"n": n}
    words = _beside(axis, text, min(lane.fences) - 8, max(lane.fences) + 6, lane.y + 14)
    if any(_meet(words, other) for other in lane.words):
        words = replace(words, y=lane.y + 31)
    lane.fence_words = words


def _effect_lane(axis: Axis, slot: EffectSlot, y: float) -> Lane:
    lane = Lane(_("Effect"), y, CLASSES.get(slot.status, ""), below=slot.slot[:14])
    if slot.status == EffectStatus.COMMITTED:
        lane.status_class = "st-ok"
    prepared, changed = axis.place(slot.created_at), axis.place(slot.changed_at)
    lane.points.append((prepared, False, False))
    if slot.granted_at:
        lane.points.append((axis.place(slot.granted_at), True, False))
    lane.points.append((changed, slot.status == EffectStatus.COMMITTED, slot.status == EffectStatus.UNKNOWN))
    if changed - prepared > 14:
        lane.join = f"M{prepared + 6:.1f} {y + 10}H{changed - 6:.1f}"
    status = words().get(slot.status, slot.status)
    lane.words.append(_beside(axis, status, prepared - 8, changed + 6, y + 14))
    return lane


def _beside(axis: Axis, text: str, start: float, end: float, y: float) -> Words:
    """Put words right of what they belong to, else inside, else left of it, and never over folded time."""
    width = 6.6 * len(text) + 8
    if end + width <= axis.reach(end)[1]:
        return Words(end + 7, y, text)
    if end - start >= width + 8:
        return Words(start + 8, y, text)
    if start - width >= axis.reach(start)[0]:
        return Words(start - 7, y, text, anchor="right")
    return Words(RIGHT, y, text, anchor="right") if end + width > RIGHT else Words(end + 7, y, text)


def _meet(one: Words, other: Words) -> bool:
    """Return whether two texts on one line lie over one another."""

    def reach(words: Words) -> tuple[float, float]:
        width = 6.6 * len(words.text)
        return (words.x - width, words.x) if words.anchor else (words.x, words.x + width)

    (a, b), (c, d) = reach(one), reach(other)
    return one.y == other.y and a < d and c < b


def _idle(fold: Fold, job: Job, attempts: Sequence[Attempt]) -> str:
    """Return in one word why nothing happened in between."""
    before = [a for a in attempts if a.finished_at is not None and a.finished_at <= fold.start + BEATLESS]
    if not before:
        return _("pending")
    last = before[-1]
    if last.status == AttemptStatus.WAITING:
        return _("waiting")
    if last.status == AttemptStatus.UNCERTAIN and job.status == JobStatus.UNCERTAIN:
        return _("uncertain")
    return _("back-off") if last.status == AttemptStatus.FAILED and last is not attempts[-1] else _("idle")


def _describe(
    attempts: Sequence[Attempt], before: int, late: dict[object, list[FenceRefusal]], now: datetime
) -> str:
    """Say the chart in words, for those who do not see it."""
    said = []
    for number, attempt in enumerate(attempts, start=before + 1):
        facts = {
            "n": number,
            "start": clock(attempt.started_at, now),
            "status": words().get(attempt.status, attempt.status),
        }
        if attempt.finished_at is None:
            said.append(_("Attempt %(n)s has run since %(start)s.") % facts)
        else:
            facts["end"] = clock(attempt.finished_at, now)
            said.append(_("Attempt %(n)s ran from %(start)s to %(end)s: %(status)s.") % facts)
        if n := len(late.get(attempt.id, [])):
            said.append(
                ngettext(
                    "Afterwards %(n)s write of it was refused.",
                    "Afterwards %(n)s writes of it were refused.",
                    n,
                )
                % {"n": n}
            )
    return " ".join(said)
