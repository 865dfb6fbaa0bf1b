"""The order of a run: rounds, and in each round every measure on every side in turn (A B, A B, A B).

A shared disk and neighbours change a machine's speed by the minute; what is compared is therefore measured
in adjacent minutes, more than once, and stands beside the raw rate of commits just before it.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import machine
from bench.ground import GROUNDS, SCRATCH, Ground
from bench.measures.drain import drain
from bench.measures.enqueue import batches, bulk, one_by_one, requests
from bench.measures.idle import idle
from bench.measures.pickup import pickup
from bench.measures.raises import raises
from bench.record import Record
from bench.sides import Side

MEASURES = (
    "enqueue", "bulk", "requests", "batches", "drain1", "drain2", "pickup", "idle", "raise", "http",
    "served", "waiting16", "waiting256",
)  # fmt: skip
ONCE = ("idle", "waiting16", "waiting256")
"""Measures that more rounds would not make better: they count, and hardly time."""
SHARE = 10
"""Jobs that are enqueued one by one: a tenth of those drained."""
PICKUPS = 60
RAISES = 200
OURS = ("requests", "batches", "raise", "http", "served", "waiting16", "waiting256")
"""Measures of what only the product has."""
SERVED = ("raise",)
"""Measures that take a database server."""


@dataclass(frozen=True)
class Plan:
    """What was asked for on the command line."""

    databases: Sequence[str]
    measures: Sequence[str]
    rounds: int
    count: int


def carry_out(plan: Plan, product: Side, peer: Side | None, record: Record) -> None:
    """Measure everything that was asked for, telling each figure as it comes."""
    began = time.monotonic()
    for name in plan.databases:
        with GROUNDS[name]() as ground:
            sides = [product] if peer is None or name == "sqlite" else [product, peer]
            facts = ground.facts() | {"file_system": machine.file_system(ground.folder)}
            record.add({"measure": "database", "database": name, **facts})
            print(f"bench: {facts['version']} on {facts['file_system']}", flush=True)
            if facts["file_system"] in ("tmpfs", "ramfs"):
                print("bench: that is memory, not a disk: no commit waits for anything (see TMPDIR)")
            for side in sides:
                ground.prepare(side)
            for number, measure, side in _turns(_of(plan, name), sides):
                figures = _take(measure, ground, side, plan.count)
                record.add(
                    {"measure": measure, "side": side.name, "database": name, "round": number, **figures}
                )
                shown = ", ".join(f"{key} {value}" for key, value in figures.items() if key != "n")
                clock = f"{time.monotonic() - began:4.0f} s"
                print(f"{clock}  {name} {number}/{plan.rounds} {measure:8}{side.name:10} {shown}", flush=True)


def _of(plan: Plan, database: str) -> Plan:
    """Return what of the plan can be measured on a database: a file has nobody who ends a stopped writer."""
    return replace(plan, measures=[m for m in plan.measures if database != "sqlite" or m not in SERVED])


def _turns(plan: Plan, sides: Sequence[Side]) -> Iterator[tuple[int, str, Side]]:
    for number in range(1, plan.rounds + 1):
        for measure in plan.measures:
            if number == 1 or measure not in ONCE:
                for side in sides[:1] if measure in OURS else sides:
                    yield number, measure, side


def _take(measure: str, ground: Ground, side: Side, count: int) -> dict[str, Any]:
    with _folder() as folder:
        match measure:
            case "enqueue":
                return one_by_one(ground, side, max(1, count // SHARE))
            case "bulk":
                return bulk(ground, side, count)
            case "requests":
                return requests(ground, side, max(1, count // SHARE))
            case "batches":
                return batches(ground, side, count)
            case "drain1":
                return drain(ground, side, count, 1, folder)
            case "drain2":
                return drain(ground, side, count, 2, folder)
            case "pickup":
                return pickup(ground, side, PICKUPS, folder)
            case "idle":
                return idle(ground, side, folder)
            case "raise":
                return raises(ground, side, RAISES, folder)
            case _:
                return _over_http(measure, ground, side, count, folder)


def _over_http(measure: str, ground: Ground, side: Side, count: int, folder: Path) -> dict[str, Any]:
    from bench.measures import http  # needs httpx, which the others do not

    match measure:
        case "http":
            return http.http(ground, side, count, folder)
        case "served":
            return http.served(ground, side, count, folder)
        case _:
            return http.waiting(ground, side, folder, int(measure.removeprefix("waiting")))


@contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder for marks and logs; it stays when the measure failed, for somebody to look."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="marks-", dir=SCRATCH))
    yield folder
    shutil.rmtree(folder)
