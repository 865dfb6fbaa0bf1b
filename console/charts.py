"""Charts: numbers become the geometry of an SVG, which a template draws, with words for the blind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

WIDTH, HEIGHT = 340.0, 112.0
LEFT, TOP, BOTTOM = 34.0, 6.0, 96.0


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: where, and what it says."""

    at: float
    text: str
    anchor: str = ""


@dataclass(frozen=True)
class Bar:
    """One bar of a bar chart."""

    x: float
    y: float
    width: float
    height: float


@dataclass
class Chart:
    """What the template draws: `lines` are (class, path), `areas` likewise, `bars` are (class, bars)."""

    name: str
    title: str
    description: str
    headline: str
    ticks: list[Tick]
    times: list[Tick]
    lines: list[tuple[str, str]] = field(default_factory=list)
    areas: list[tuple[str, str]] = field(default_factory=list)
    bars: list[tuple[str, list[Bar]]] = field(default_factory=list)
    note: str = ""
    empty: bool = False


def nice(top: float) -> float:
    """Return the round number at or above `top` that the axis ends at."""
    if top <= 0:
        return 2.0
    power = 10.0 ** math.floor(math.log10(top))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= top)


def axis(top: float, say: Callable[[float], str]) -> list[Tick]:
    """Return the marks at nothing, half and full height."""
    return [Tick(_y(value, top), say(value)) for value in (0.0, top / 2, top)]


def times(starts: Sequence[datetime], end: datetime) -> list[Tick]:
    """Return four marks of time under the chart, with the day where it is of several."""
    moments = [starts[0], starts[len(starts) // 3], starts[2 * len(starts) // 3], end]
    places = [LEFT, LEFT + (WIDTH - LEFT) / 3, LEFT + 2 * (WIDTH - LEFT) / 3, WIDTH]
    anchors = ["", "mid", "mid", "right"]
    form = "%H:%M" if end - starts[0] <= timedelta(days=1) else "%m-%d %H:%M"
    return [
        Tick(round(x, 1), m.astimezone(UTC).strftime(form), a)
        for x, m, a in zip(places, moments, anchors, strict=True)
    ]


def line(values: Sequence[float | None], top: float) -> str:
    """Return the path through the values; where nothing was measured the line is broken."""
    step = (WIDTH - LEFT) / max(1, len(values) - 1)
    path, pen = [], "M"
    for n, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        path.append(f"{pen}{LEFT + n * step:.1f} {_y(value, top):.1f}")
        # A point between two gaps would draw nothing; round line caps make a dot of it.
        alone = pen == "M" and (n + 1 == len(values) or values[n + 1] is None)
        if alone:
            path.append("h.1")
        pen = "L"
    return "".join(path)


def area(values: Sequence[float], top: float) -> str:
    """Return the closed path between the values and the axis."""
    return f"{line(values, top)}L{WIDTH:.1f} {BOTTOM:.1f}L{LEFT:.1f} {BOTTOM:.1f}Z"


def bars(values: Sequence[float], top: float, *, upon: Sequence[float] = ()) -> list[Bar]:
    """Return one bar for each value above nothing; each stands upon the value in its place of `upon`."""
    step = (WIDTH - LEFT) / len(values)
    grounds = upon or [0.0] * len(values)
    return [
        Bar(
            round(LEFT + n * step + 1, 1),
            _y(ground + v, top),
            round(step - 2, 1),
            round(_y(ground, top) - _y(ground + v, top), 1),
        )
        for n, (ground, v) in enumerate(zip(grounds, values, strict=True))
        if v > 0
    ]


def spark(values: Sequence[float], *, width: float = 96.0, height: float = 20.0) -> str:
    """Return the bars of a chart that fits into a line of text, as one path: a list has hundreds of them."""
    top = max(values, default=0)
    if top <= 0:
        return ""
    step = width / len(values)
    tall = [(n, max(1.0, (height - 1) * v / top)) for n, v in enumerate(values) if v > 0]
    return "".join(f"M{n * step:.1f} {height:.1f}v{-h:.1f}h{step - 1:.1f}v{h:.1f}z" for n, h in tall)


def _y(value: float, top: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * min(value, top) / top, 1)
