"""The benchmark tells the truth about what it was asked and what it found. Nothing here is timed."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from bench import __main__ as command
from bench import marks, record, report
from bench.failed import BenchFailed
from bench.measures.pickup import quantile
from bench.plan import MEASURES, Plan, _turns
from bench.procs import ROOT, Workers, family

RUN = {
    "measure": "run",
    "date": "2026-01-02 03:04 UTC",
    "command": "python -m bench --peer rival",
    "rounds": 3,
    "machine": {
        "cpu": "Some CPU", "cores": "2", "memory": "4 GiB", "system": "Linux 6.1",
        "python": "3.11.7", "django": "5.2", "psycopg": "3.3",
    },
    "sides": {"interlock": "with its defaults", "rival": "rival 1.0"},
}  # fmt: skip
POSTGRESQL = {
    "measure": "database", "database": "postgresql", "version": "PostgreSQL 18.0", "settings": "fsync on",
    "file_system": "ext4",
}  # fmt: skip


def line(side, per_s, **more):
    return {"measure": "drain1", "side": side, "database": "postgresql", "per_s": per_s, **more}


def lines():
    found = [line("interlock", n, rss_mib=60.5) for n in (4000, 9000, 5000)]
    return [RUN, POSTGRESQL, *found, *(line("rival", n) for n in (10000, 8000, 2000))]


def refused(arguments):
    with pytest.raises(SystemExit):
        command.run_parser().parse_args(arguments)


# -- what is asked for ------------------------------------------------------------------------------------


def test_without_options_everything_is_measured_and_no_peer_is_installed():
    options = command.run_parser().parse_args([])
    assert options.only == list(MEASURES)
    assert options.database == ["postgresql", "sqlite"]
    assert (options.rounds, options.n, options.peer) == (3, 20_000, None)


def test_a_part_is_measured_in_the_usual_order():
    options = command.run_parser().parse_args(["--only", "drain2,enqueue", "--database", "sqlite"])
    assert options.only == ["enqueue", "drain2"]
    assert options.database == ["sqlite"]


@pytest.mark.parametrize(
    "arguments",
    [["--only", "drain3"], ["--database", "oracle"], ["--rounds", "0"], ["--n", "-1"], ["--peer", "nobody"]],
)
def test_what_cannot_be_measured_is_refused(arguments):
    refused(arguments)


def test_sides_take_turns_within_each_round_and_counting_is_done_once():
    plan = Plan(["postgresql"], ["drain1", "idle"], rounds=2, count=10)
    sides: list[Any] = ["A", "B"]
    turns: list[Any] = list(_turns(plan, sides))
    assert turns == [
        (1, "drain1", "A"),
        (1, "drain1", "B"),
        (1, "idle", "A"),
        (1, "idle", "B"),
        (2, "drain1", "A"),
        (2, "drain1", "B"),
    ]


# -- what is found ----------------------------------------------------------------------------------------


def test_table_shows_median_and_range_of_each_side_and_the_ratio_of_the_medians():
    table = report.tables(lines())
    assert "### PostgreSQL 18.0" in table
    assert (
        "| drain, 1 worker process, jobs/s | 5,000 (4,000..9,000) | 8,000 (2,000..10,000) | 0.62 |" in table
    )
    assert "pickup" not in table.partition("### Goals")[0]


def test_a_goal_that_is_missed_is_called_short():
    goals = report.tables(lines()).partition("### Goals")[2]
    assert "| drain with one process, of the peer's | ≥ 0.7 | 0.62 | **short** |" in goals
    assert "| memory after a drain, PostgreSQL, MiB | ≤ 75 | 60.50 | met |" in goals
    assert "SQLite" not in goals


def test_without_a_peer_there_is_no_ratio():
    table = report.tables([entry for entry in lines() if entry.get("side") != "rival"])
    assert "| drain, 1 worker process, jobs/s | 5,000 (4,000..9,000) |\n" in table
    assert "of the peer's" not in table


def test_report_changes_only_what_stands_between_its_marks(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "ROOT", tmp_path)
    page = tmp_path / report.PAGE
    page.parent.mkdir()
    page.write_text(f"# Ours\n{report.BEGIN}\nold\n{report.END}\nbelow\n", "utf-8")
    report.write(lines())
    text = page.read_text("utf-8")
    assert text.startswith("# Ours\n")
    assert text.endswith(f"{report.END}\nbelow\n")
    assert "old" not in text
    for fact in (
        "Some CPU, 2 cores, 4 GiB",
        "`python -m bench --peer rival`",
        "2026-01-02",
        "fsync on",
        "ext4",
    ):
        assert fact in text
    report.write(lines())
    assert page.read_text("utf-8") == text


def test_report_refuses_a_page_without_its_marks(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / report.PAGE).write_text("# Ours\n", "utf-8")
    with pytest.raises(BenchFailed):
        report.write(lines())


def test_the_page_has_the_marks():
    text = (ROOT / report.PAGE).read_text("utf-8")
    assert (text.count(report.BEGIN), text.count(report.END)) == (1, 1)


def test_a_run_is_read_back_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "SCRATCH", tmp_path)
    run = record.Record.start({"command": "x"})
    run.add(line("interlock", 5))
    assert record.read(None) == run.lines
    assert record.select(run.lines, side="interlock") == [line("interlock", 5)]


def test_reading_before_any_run_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "SCRATCH", tmp_path)
    with pytest.raises(BenchFailed, match="nothing has been measured"):
        record.read(None)


def test_a_quantile_is_a_value_that_was_measured():
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.95) == 4.0
    assert quantile([7.0], 0.5) == 7.0


# -- what is counted --------------------------------------------------------------------------------------

BODY = """
from bench import marks
import threading
threads = [threading.Thread(target=lambda: [marks.hit() for _ in range(500)]) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
marks.began(7); marks.began(7)
"""


def test_runs_of_several_processes_and_threads_are_all_counted(tmp_path):
    environment = {**os.environ, marks.FOLDER: str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", BODY], cwd=ROOT, env=environment, check=True)
    first, runs = marks.read_hits(tmp_path)
    assert runs == 2 * (4 * 500 + 2)
    starts = marks.read_starts(tmp_path)
    assert list(starts) == [7]
    assert first is not None
    assert starts[7] > first


def test_before_the_first_run_there_is_no_instant(tmp_path):
    assert marks.read_hits(tmp_path) == (None, 0)


def test_a_worker_that_ends_by_itself_fails_the_measure(tmp_path):
    command_line = [sys.executable, "-c", "print('no such queue'); raise SystemExit(3)"]
    with Workers(command_line, dict(os.environ), 1, tmp_path / "log") as running:
        running._processes[0].wait(30)
        with pytest.raises(BenchFailed, match="code 3: no such queue"):
            running.check()


def test_a_family_is_a_process_and_its_descendants():
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'], stdin=sys.stdin)"
    with subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE) as process:
        try:
            while len(found := family(process.pid)) < 2:
                assert process.poll() is None
        finally:
            process.communicate(b"\n")
    assert found[0] == process.pid


def test_the_benchmarks_kinds_are_no_part_of_the_product():
    code = "import django; django.setup(); from jobs import handlers; print(handlers.known_kinds())"
    known = {}
    for settings in ("config.settings", "bench.settings"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": settings},
            capture_output=True,
            text=True,
            check=True,
        )
        known[settings] = done.stdout
    assert "bench.noop" not in known["config.settings"]
    assert "bench.noop" in known["bench.settings"]


def test_a_line_is_one_json_object(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "SCRATCH", tmp_path)
    run = record.Record.start({"command": "ä\n"})
    assert len(run.path.read_text("utf-8").splitlines()) == 1
    assert json.loads(run.path.read_text("utf-8"))["command"] == "ä\n"
