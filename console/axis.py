"""The time axis of a timeline: real time where something happened, idle time folded away."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

LEFT, RIGHT = 96.0, 1060.0
FOLD = 52.0
"""Width of idle time, however long it was."""
LEAST = 210.0
"""Width that any stretch gets, however short it was, where there is room: words stand beside short bars."""
LABEL = 92.0
"""Room that one mark's words need."""

Interval = tuple[datetime, datetime]
_STEPS = (
    0.01,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    21600,
    43200,
    86400,
)


@dataclass(frozen=True)
class Stretch:
    """Time that is drawn to scale."""

    start: datetime
    end: datetime
    x: float
    width: float

    def place(self, moment: datetime) -> float:
        """Return where an instant of this stretch lies."""
        length = (self.end - self.start).total_seconds()
        share = (moment - self.start).total_seconds() / length if length else 0.5
        return self.x + self.width * min(1.0, max(0.0, share))


@dataclass(frozen=True)
class Fold:
    """Time that is folded away."""

    start: datetime
    end: datetime
    x: float

    @property
    def middle(self) -> float:
        return self.x + FOLD / 2


@dataclass(frozen=True)
class Mark:
    """A line down the axis with a time of day."""

    x: float
    text: str


class Axis:
    """Places instants. Made of the intervals in which something happened; an instant is an empty one."""

    def __init__(self, busy: Iterable[Interval]) -> None:
        islands = _islands(sorted(busy))
        free = RIGHT - LEFT - FOLD * (len(islands) - 1)
        least = min(LEAST, free / len(islands) * 0.7)
        room = free - least * len(islands)
        total = sum(((end - start).total_seconds() for start, end in islands), 0.0) or 1.0
        self.stretches: list[Stretch] = []
        self.folds: list[Fold] = []
        x = LEFT
        for start, end in islands:
            if self.stretches:
                self.folds.append(Fold(self.stretches[-1].end, start, x))
                x += FOLD
            width = least + room * (end - start).total_seconds() / total
            if total == 1.0 and len(islands) == 1:
                width = RIGHT - LEFT
            self.stretches.append(Stretch(start, end, x, width))
            x += width

    def place(self, moment: datetime) -> float:
        """Return where an instant lies; one inside a fold lies at its end."""
        number = bisect_right([s.start for s in self.stretches], moment) - 1
        return round(self.stretches[max(0, number)].place(moment), 1)

    def reach(self, x: float) -> tuple[float, float]:
        """Return from where to where words may run that belong to a place: not over folded time."""
        left = max((f.x + FOLD for f in self.folds if f.x + FOLD <= x + 1), default=LEFT)
        right = min((f.x for f in self.folds if f.x >= x - 1), default=RIGHT)
        return left, right

    def marks(self) -> list[Mark]:
        """Return marks at round times, none so close to another that their words meet."""
        found: list[Mark] = []
        for stretch in self.stretches:
            for moment, text in _round_times(stretch):
                x = round(stretch.place(moment), 1)
                clear = all(abs(x - fold.middle) > LABEL * 0.7 for fold in self.folds)
                if clear and (not found or x - found[-1].x >= LABEL) and x <= RIGHT - 20:
                    found.append(Mark(x, text))
        return found

    def line(self) -> str:
        """Return the path of the axis itself, interrupted where time is folded away."""
        return "".join(f"M{s.x - 4:.1f} 0H{s.x + s.width:.1f}" for s in self.stretches)


def _islands(busy: Sequence[Interval]) -> list[Interval]:
    """Join what is close together, judged by how much happened in all."""
    happened = sum(((end - start).total_seconds() for start, end in busy), 0.0)
    idle = timedelta(seconds=max(3.0, happened * 0.6))
    islands: list[Interval] = []
    for start, end in busy:
        if islands and start - islands[-1][1] <= idle:
            islands[-1] = islands[-1][0], max(islands[-1][1], end)
        else:
            islands.append((start, end))
    return islands


def _round_times(stretch: Stretch) -> list[tuple[datetime, str]]:
    length = (stretch.end - stretch.start).total_seconds()
    pieces = max(1.0, stretch.width / (LABEL + 18))
    step = next((s for s in _STEPS if length / s <= pieces), 86_400.0)
    form = "%H:%M:%S.%f" if step < 1 else "%H:%M:%S" if step < 86_400 else "%m-%d %H:%M"
    first = stretch.start.timestamp()
    moments: list[datetime] = []
    at = -(-first // step) * step
    while at <= stretch.end.timestamp() and len(moments) < 12:
        moments.append(datetime.fromtimestamp(at, UTC))
        at += step
    if not moments:
        moments = [stretch.start.astimezone(UTC)]
    return [(m, m.strftime(form)[:-4] if step < 1 else m.strftime(form)) for m in moments]
