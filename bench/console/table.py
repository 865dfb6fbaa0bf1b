"""The table of a run, on the terminal and in docs/benchmarks.md."""

from collections.abc import Sequence

from bench.record import Line, select
from bench.report import PAGE, facts_of_machine, put

__all__ = ["PAGE", "line", "table", "verdict", "write"]

BEGIN, END = "<!-- console: python -m bench.console report -->", "<!-- end of console -->"
GOAL_MS = 100
NAMED = 5
"""So many of the pages that miss a goal are named below the table, which marks each."""
HEAD = (
    "| page | p50, ms | p95, ms | process CPU, ms | server CPU, ms | queries | KiB"
    " | read from end to end | ≤ 100 ms | CPU ≤ 100 ms |\n"
    "| --- | --: | --: | --: | --: | --: | --: | --- | --- | --- |\n"
)


def write(lines: Sequence[Line]) -> None:
    """Put the table of a run between its marks of the page."""
    put(BEGIN, END, f"{circumstances(lines)}\n{table(lines)}\n{verdict(lines)}\n")


def table(lines: Sequence[Line]) -> str:
    """Return a row for each page."""
    return HEAD + "".join(f"{line(found)}\n" for found in select(lines, measure="page"))


def line(cost: Line) -> str:
    """Return the row of one page."""
    server = "" if cost["server_ms"] is None else f"{cost['server_ms']:.1f}"
    met, lean = ("met" if value <= GOAL_MS else "**short**" for value in (cost["p95_ms"], _processor(cost)))
    scans = ", ".join(cost["scans"]) or "none"
    times = " | ".join(f"{cost[name]:.1f}" for name in ("median_ms", "p95_ms", "process_ms"))
    return (
        f"| {cost['title']} | {times} | {server} | {cost['queries']} | {cost['bytes'] / 1024:.0f}"
        f" | {scans} | {met} | {lean} |"
    )


def verdict(lines: Sequence[Line]) -> str:
    """Say which pages miss the goal, by the clock and by the processor, and which read a large table."""
    costs = select(lines, measure="page")
    slow = [cost["title"] for cost in costs if cost["p95_ms"] > GOAL_MS]
    busy = [cost["title"] for cost in costs if _processor(cost) > GOAL_MS]
    scanning = [cost["title"] for cost in costs if cost["scans"]]
    return (
        f"{len(costs)} addresses: {_named(slow, f'p95 above {GOAL_MS} ms')}; "
        f"{_named(busy, f'processor time above {GOAL_MS} ms')}; "
        f"{_named(scanning, 'a large table read from end to end')}."
    )


def _processor(cost: Line) -> float:
    """Return what a page takes of processors, in milliseconds: the process's median and the server's mean."""
    return float(cost["process_ms"]) + float(cost["server_ms"] or 0)


def _named(titles: Sequence[str], what: str) -> str:
    names = "; ".join(titles[:NAMED]) + (", …" if len(titles) > NAMED else "")
    return f"{what}: {len(titles) or 'none'}" + (f" ({names})" if titles else "")


def circumstances(lines: Sequence[Line]) -> str:
    """Return when, on what, over how much and beside what."""
    run = lines[0]
    ends = "".join(f", {_load(end)} at the end" for end in select(lines, measure="end"))
    rows = ", ".join(f"{name.removeprefix('jobs_')} {n:,}" for name, n in run["rows"].items())
    database = run["database"]
    facts = [
        f"Measured {run['date']} by `{run['command']}`: {run['rounds']} requests an address, after two more.",
        *facts_of_machine(run["machine"]),
        f"{database['version']}, on {database['file_system']}: {database['settings']}.",
        f"Load of the machine (1, 5, 15 minutes): {_load(run)} when it was filled{ends or ', then stopped'}.",
        f"Rows: {rows}.",
        f"Large are tables above 10,000 rows: {', '.join(run['large'])}.",
        f"“Read from end to end” is counted by {run['how']}.",
    ]
    return "".join(f"- {fact}\n" for fact in facts)


def _load(found: Line) -> str:
    return ", ".join(f"{value:.1f}" for value in found["load"])
