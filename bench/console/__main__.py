"""`python -m bench.console`: fill a database, ask for every page of the console, and print what each cost.

python -m bench.console                                     a million jobs on a private PostgreSQL
python -m bench.console --database sqlite --jobs 100000     fewer, in a file
python -m bench.console --only inbox,plan-new                some pages
python -m bench.console report [FILE]                       the newest run, or that one, into the page
"""

import argparse
import os
import secrets
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import django

from bench import machine
from bench.console import table
from bench.failed import ended
from bench.ground import GROUNDS, SCRATCH, Postgres
from bench.record import Record, read

RUNS = SCRATCH / "console"


def main(arguments: Sequence[str]) -> int:
    """Do what was asked for and return the exit code."""
    if arguments[:1] == ["report"]:
        options = report_parser().parse_args(arguments[1:])
        return ended(lambda: publish(options.file))
    options = run_parser().parse_args(arguments)
    return ended(lambda: measure(options, arguments))


def publish(file: Path | None) -> None:
    """Write the table of a run into its page."""
    table.write(read(file, RUNS))
    print(f"bench: {table.PAGE} written")


def measure(options: argparse.Namespace, arguments: Sequence[str]) -> None:
    """Fill, ask, print."""
    with _database(options.database) as (url, facts, server):
        _set_up(url)
        run(options, arguments, facts, server)


def run(
    options: argparse.Namespace, arguments: Sequence[str], facts: dict[str, str], server_pid: int | None
) -> None:
    """Fill the database that Django has been told of, ask for the pages, and keep what each cost."""
    from bench.console.ask import Browser
    from bench.console.fill import fill, settle
    from bench.console.pages import pages
    from config import garbage

    began = time.monotonic()
    rows = fill(options.jobs, lambda line: print(f"{time.monotonic() - began:4.0f} s  {line}", flush=True))
    settle()
    # What they are about is looked up before anything is counted.
    asked = [page for page in pages() if not options.only or page.name.removeprefix("admin:") in options.only]
    garbage.settle()  # as in a web server
    browser = Browser(server_pid)
    head = {
        "command": shlex.join(["python", "-m", "bench.console", *arguments]),
        "machine": machine.describe(),
        "rounds": options.rounds,
        "database": facts,
        "rows": rows,
        "large": sorted(browser.large),
        "how": browser.scans.how,
        "load": os.getloadavg(),
    }
    record = Record.start(head, RUNS)
    for page in asked:
        cost = browser.measure(page, options.rounds)
        record.add({"measure": "page", **asdict(cost)})
        print(f"{time.monotonic() - began:4.0f} s  {table.line(record.lines[-1])}", flush=True)
    record.add({"measure": "end", "load": os.getloadavg(), "seconds": round(time.monotonic() - began)})
    print(f"bench: kept in {record.path}; `python -m bench.console report` writes {table.PAGE} from it")
    print(table.verdict(record.lines))


@contextmanager
def _database(name: str) -> Iterator[tuple[str, dict[str, str], int | None]]:
    """Yield the address of an empty database, what it is, and its server's process."""
    with GROUNDS[name]() as ground:
        facts = ground.facts() | {"file_system": machine.file_system(ground.folder)}
        if isinstance(ground, Postgres):
            assert ground.server.process is not None
            yield ground.server.url, facts, ground.server.process.pid
        else:
            yield f"sqlite:///{ground.folder}/console.sqlite3", facts, None


def _set_up(url: str) -> None:
    """Make this process the product with its defaults and the demonstration's pages, on an empty database."""
    static = SCRATCH / "static"
    static.mkdir(parents=True, exist_ok=True)
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "ENV_FILE": "",
        "SECRET_KEY": secrets.token_urlsafe(48),
        "AUDIT_KEY": secrets.token_urlsafe(48),
        "DATABASE_URL": url,
        "DEMO": "1",
        "STATIC_HASHED": "0",
        "STATIC_ROOT": str(static),
        "LOG_LEVEL": "ERROR",
    }
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def run_parser() -> argparse.ArgumentParser:
    """Return the parser of a run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.console",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--database", choices=sorted(GROUNDS), default="postgresql")
    parser.add_argument("--jobs", type=int, default=1_000_000, help="how many (default 1000000)")
    parser.add_argument("--rounds", type=int, default=40, help="requests counted for each page (default 40)")
    parser.add_argument(
        "--only",
        type=lambda text: [name.strip() for name in text.split(",")],
        default=[],
        help="these pages, by the names of their addresses, comma-separated",
    )
    return parser


def report_parser() -> argparse.ArgumentParser:
    """Return the parser of `report`."""
    parser = argparse.ArgumentParser(prog="python -m bench.console report")
    parser.add_argument("file", nargs="?", type=Path, help="a run in var/bench/console/; default: the newest")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
