"""Tables from the lines of a run, on the terminal and in docs/benchmarks.md."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.failed import BenchFailed
from bench.procs import ROOT
from bench.record import Line, select

PAGE = Path("docs/benchmarks.md")
BEGIN, END = "<!-- figures: python -m bench report -->", "<!-- end of figures -->"
OURS = "interlock"


class Row(NamedTuple):
    """One line of a table: a field of a measure's lines."""

    title: str
    measure: str
    field: str
    digits: int = 0


ROWS = (
    Row("enqueue one by one, jobs/s", "enqueue", "per_s"),
    Row("enqueue 1,000 a call, jobs/s", "bulk", "per_s"),
    Row("enqueue by the API, a request each, jobs/s", "requests", "per_s"),
    Row("enqueue by the API, 1,000 a request, jobs/s", "batches", "per_s"),
    Row("enqueue over HTTP, 1,000 a request, 2 clients, jobs/s", "served", "per_s"),
    Row("web server CPU, µs/job so enqueued", "served", "web_us_per_job", 1),
    Row("drain, 1 worker process, jobs/s", "drain1", "per_s"),
    Row("drain, 2 worker processes, jobs/s", "drain2", "per_s"),
    Row("raw one-row commits/s just before the drains of 1", "drain1", "commit_per_s"),
    Row("raw one-row commits/s just before the drains of 2", "drain2", "commit_per_s"),
    Row("worker CPU, µs/job (1 process)", "drain1", "worker_us_per_job", 1),
    Row("PostgreSQL CPU, µs/job (1 process)", "drain1", "server_us_per_job", 1),
    Row("WAL, bytes/job (1 process)", "drain1", "wal_bytes_per_job"),
    Row("pickup p50, ms", "pickup", "p50_ms", 2),
    Row("pickup p95, ms", "pickup", "p95_ms", 2),
    Row("pickup, longest, ms", "pickup", "max_ms", 2),
    Row("raise of the epoch under 32 writers p50, ms", "raise", "p50_ms", 1),
    Row("raise of the epoch under 32 writers p99, ms", "raise", "p99_ms", 1),
    Row("raise of the epoch under 32 writers, longest, ms", "raise", "max_ms", 1),
    Row("jobs claimed and committed/s by those writers", "raise", "writes_per_s"),
    Row("raise with a writer stopped inside a fenced transaction, s", "raise", "stopped_s", 2),
    Row("idle: statements/s", "idle", "statements_per_s", 2),
    Row("idle: transactions/s", "idle", "transactions_per_s", 2),
    Row("idle: CPU, % of a core", "idle", "cpu_percent", 2),
    Row("claimed and committed over HTTP, jobs/s", "http", "per_s"),
    Row("web server CPU, µs/job over HTTP", "http", "web_us_per_job", 1),
    Row("100 waiting, 16 threads: other requests' p95, ms", "waiting16", "others_p95_ms", 2),
    Row("100 waiting, 16 threads: connections", "waiting16", "connections"),
    Row("100 waiting, 256 threads: other requests' p95, ms", "waiting256", "others_p95_ms", 2),
    Row("100 waiting, 256 threads: connections", "waiting256", "connections"),
    Row("the same with nobody waiting, ms", "waiting256", "alone_p95_ms", 2),
    Row("memory of an idle worker, MiB", "idle", "rss_mib", 1),
    Row("memory of a worker after a drain, MiB", "drain1", "rss_mib", 1),
)


class Goal(NamedTuple):
    """A floor or ceiling that the product set itself."""

    title: str
    database: str
    measure: str
    field: str
    bound: float
    at_least: bool
    ratio: bool = False


GOALS = (
    Goal("enqueue over HTTP, 1,000 a request, jobs/s", "postgresql", "served", "per_s", 10_000, True),
    Goal("enqueue over HTTP, 1,000 a request, SQLite, jobs/s", "sqlite", "served", "per_s", 10_000, True),
    Goal("drain with one process, of the peer's", "postgresql", "drain1", "per_s", 0.7, True, ratio=True),
    Goal("drain with one process, SQLite, jobs/s", "sqlite", "drain1", "per_s", 6000, True),
    Goal("pickup p50, PostgreSQL, ms", "postgresql", "pickup", "p50_ms", 5, False),
    Goal("raise p99 under 32 writers, ms", "postgresql", "raise", "p99_ms", 250, False),
    Goal("raise with a stopped writer, s", "postgresql", "raise", "stopped_s", 3, False),
    Goal("idle statements/s, PostgreSQL", "postgresql", "idle", "statements_per_s", 2, False),
    Goal("claimed and committed over HTTP, PostgreSQL, jobs/s", "postgresql", "http", "per_s", 1000, True),
    Goal("memory after a drain, PostgreSQL, MiB", "postgresql", "drain1", "rss_mib", 75, False),
    Goal("memory after a drain, SQLite, MiB", "sqlite", "drain1", "rss_mib", 75, False),
)


def write(lines: Sequence[Line]) -> None:
    """Put the tables of a run between the marks of the page."""
    put(BEGIN, END, f"{_circumstances(lines)}\n{tables(lines)}")


def put(begin: str, end: str, figures: str) -> None:
    """Put figures between two marks of the page; what people wrote around them stays."""
    page = ROOT / PAGE
    text = page.read_text("utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise BenchFailed(f"{PAGE} must hold the marks {begin} and {end} once each.")
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    page.write_text(f"{before}{begin}\n\n{figures}{end}{after}", "utf-8")


def tables(lines: Sequence[Line]) -> str:
    """Return a table for each database, and one of the goals."""
    parts = []
    for head in select(lines, measure="database"):
        name = head["database"]
        sides = list(dict.fromkeys(line["side"] for line in select(lines, database=name) if "side" in line))
        parts.append(f"### {head['version']}\n\n{_table(lines, name, sides)}")
    if goals := _goals(lines):
        parts.append(f"### Goals\n\n{goals}")
    return "\n".join(parts)


def values(lines: Sequence[Line], database: str, side: str, measure: str, field: str) -> list[float]:
    """Return what the rounds gave for one field."""
    found = select(lines, database=database, side=side, measure=measure)
    return [line[field] for line in found if field in line]


def ratio(lines: Sequence[Line], database: str, peer: str, measure: str, field: str) -> float | None:
    """Return our median over the peer's, None where one was not measured."""
    ours, theirs = (values(lines, database, side, measure, field) for side in (OURS, peer))
    return median(ours) / median(theirs) if ours and theirs and median(theirs) else None


def _table(lines: Sequence[Line], database: str, sides: Sequence[str]) -> str:
    peer = next((side for side in sides if side != OURS), None)
    head = ["", *sides, *(["ratio"] if peer else [])]
    rows = [head, ["---", *["--:"] * (len(head) - 1)]]
    for row in ROWS:
        cells = [_cell(values(lines, database, side, row.measure, row.field), row.digits) for side in sides]
        if not any(cells):
            continue
        if peer:
            found = ratio(lines, database, peer, row.measure, row.field)
            cells.append("" if found is None else f"{found:.2f}")
        rows.append([row.title, *cells])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _cell(found: Sequence[float], digits: int) -> str:
    """Return `median (least..most)`."""
    if not found:
        return ""
    middle, least, most = (f"{value:,.{digits}f}" for value in (median(found), min(found), max(found)))
    return middle if len(found) == 1 else f"{middle} ({least}..{most})"


def _goals(lines: Sequence[Line]) -> str:
    rows = []
    for goal in GOALS:
        found = _reached(lines, goal)
        if found is not None:
            met = found >= goal.bound if goal.at_least else found <= goal.bound
            bound = f"{'≥' if goal.at_least else '≤'} {goal.bound:,g}"
            rows.append(f"| {goal.title} | {bound} | {found:,.2f} | {'met' if met else '**short**'} |\n")
    return "| goal | bound | measured | |\n| --- | --: | --: | --- |\n" + "".join(rows) if rows else ""


def _reached(lines: Sequence[Line], goal: Goal) -> float | None:
    if goal.ratio:
        peers = {line["side"] for line in select(lines, measure=goal.measure) if line["side"] != OURS}
        return next((ratio(lines, goal.database, peer, goal.measure, goal.field) for peer in peers), None)
    found = values(lines, goal.database, OURS, goal.measure, goal.field)
    return median(found) if found else None


def _circumstances(lines: Sequence[Line]) -> str:
    """Return when, on what and how: a number without its machine says nothing."""
    (run,) = select(lines, measure="run")
    facts = [
        f"Measured {run['date']} by `{run['command']}`, {run['rounds']} rounds; median (least..most).",
        *facts_of_machine(run["machine"]),
    ]
    facts += [
        f"{head['version']}, on {head['file_system']}: {head['settings']}."
        for head in select(lines, measure="database")
    ]
    facts += [f"{name}: {note}." for name, note in run["sides"].items()]
    return "".join(f"- {fact}\n" for fact in facts)


def facts_of_machine(machine: dict[str, str]) -> list[str]:
    """Return what a run was made on, in sentences."""
    return [
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory']}, {machine['system']}.",
        f"Python {machine['python']}, Django {machine['django']}, psycopg {machine['psycopg']}.",
    ]
