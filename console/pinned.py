"""The lines that a person sees, kept in their places while the list refreshes itself: nothing moves.

Their order moves with the clock and with every case that comes. So the page says which lines it shows, and
gets them back in that order with their facts as they are now; what else belongs there is counted beside.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from console import outages, ranking
from console.outages import Group
from console.ranking import LANES, Ranking, Row
from jobs.models import Case

MOST = 100
"""Lines that can be kept: more than a page has."""
_PIN = re.compile(r"([0-2])([0-9a-f]{32})(g?)", re.ASCII)


class Pin(NamedTuple):
    """One line: in which lane it stands, of which case, and whether that one stands for its outage."""

    lane: int
    id: str
    group: bool


class Kept(NamedTuple):
    """The lines in their places, the outages that some of them are, and what belongs there besides."""

    rows: list[Row]
    groups: Mapping[str, Group]
    new: list[Row]


def written(lines: Iterable[tuple[uuid.UUID, str, bool]]) -> str:
    """Return lines, each a case, its lane and whether it stands for an outage, as an address carries them."""
    return ".".join(f"{LANES.index(lane)}{case.hex}{'g' if group else ''}" for case, lane, group in lines)


def parsed(text: str) -> list[Pin] | None:
    """Return the lines that an address names; None where it names none that could be."""
    found = [_PIN.fullmatch(part) for part in text.split(".", MOST)]
    pins = [Pin(int(match[1]), match[2], bool(match[3])) for match in found if match]
    return pins if len(pins) == len(found) else None


def keep(
    pins: Sequence[Pin], found: Ranking, groups: Mapping[str, Group], part: Sequence[Row], now: datetime
) -> Kept:
    """Return what is to be shown of the pinned lines, and which of `part`, the page as it would be, is new.

    A case that was closed or no longer matches stays where it is, and says so. An outage whose first case was
    closed is told by one that is open.
    """
    here = {row.id: row for row in found.rows}
    gone = _gone([pin.id for pin in pins if pin.id not in here], now)
    heirs = _heirs([gone[pin.id] for pin in pins if pin.group and pin.id in gone], found)
    rows, told = [], {}
    for pin in pins:
        row = here.get(pin.id) or here.get(heirs.get(pin.id, "")) or gone.get(pin.id)
        if row is None:
            continue
        rows.append(row._replace(lane=pin.lane))
        if pin.group and row.id in groups:
            told[row.id] = groups[row.id]
    if not rows:
        return Kept(list(part), groups, [])
    shown, outs = {row.id for row in rows}, {id(group) for group in told.values()}
    new = [row for row in part if row.id not in shown and id(groups.get(row.id)) not in outs]
    return Kept(rows, told, new)


def _gone(ids: Sequence[str], now: datetime) -> dict[str, Row]:
    """Return the cases that are not among the ranked ones any more."""
    if not ids:
        return {}
    cases = Case.objects.filter(pk__in=[uuid.UUID(case) for case in ids])
    return {row.id: row for row in ranking.rows_of(cases, now)}


def _heirs(first: Sequence[Row], found: Ranking) -> dict[str, str]:
    """Return of each case that stood for an outage an open one of the same outage."""
    if not first:
        return {}
    here = {row.id for row in found.rows}
    parts = outages.parted(sorted([*found.oldest, *first], key=itemgetter(2, 3)))
    heirs = {}
    for row in first:
        members = next((part for part in parts if row in part), [])
        heirs[row.id] = next((member.id for member in members if member.id in here), "")
    return heirs
