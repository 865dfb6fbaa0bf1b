"""Asking for pages as a browser does, through the WSGI handler inside this process, and what each cost."""

import re
import time
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol

from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from bench.console.pages import Page
from bench.failed import BenchFailed
from bench.measures.pickup import quantile
from bench.procs import cpu_seconds
from config import garbage
from jobs.operations import proof

LARGE = 10_000
"""Rows from which on a table is large: to read it from end to end is what no page may."""
PERSON = "ada"


@dataclass
class Seen:
    """The statements of one request."""

    statements: list[tuple[str, Any]] = field(default_factory=list)

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.statements.append((sql, params))
        return execute(sql, params, many, context)


class Scans(Protocol):
    """Tells which large tables were read from end to end since it was asked last."""

    how: str

    def begin(self) -> None: ...
    def since(self, seen: Seen) -> list[str]: ...


class PostgresScans:
    """Asks the server: `seq_scan` of pg_stat_user_tables grows with each that is executed."""

    how = "the growth of `seq_scan` in pg_stat_user_tables over all requests for the page"

    def __init__(self, large: set[str]) -> None:
        self.large = large
        self._before: dict[str, int] = {}

    def begin(self) -> None:
        self._before = self._read()

    def since(self, seen: Seen) -> list[str]:
        now = self._read()
        return [table for table in sorted(self.large) if now[table] > self._before[table]]

    def _read(self) -> dict[str, int]:
        with connection.cursor() as cursor:
            # What a session counts reaches the others at its leisure, unless it is told to.
            cursor.execute("SELECT pg_stat_force_next_flush()")
            cursor.execute("SELECT relname, seq_scan FROM pg_stat_user_tables")
            return dict(cursor.fetchall())


class SqliteScans:
    """Reads the plan of each statement: a `SCAN` of a large table without an index."""

    how = "a SCAN without an index in EXPLAIN QUERY PLAN of any of the page's statements"

    def __init__(self, large: set[str]) -> None:
        self.large = large

    def begin(self) -> None:
        """Nothing has been counted before."""

    def since(self, seen: Seen) -> list[str]:
        found: set[str] = set()
        with connection.cursor() as cursor:
            for sql, params in seen.statements:
                if sql.startswith("SELECT"):
                    aliases = {alias: table for table, alias in re.findall(r'"(\w+)" (U\d+)', sql)}
                    cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
                    for row in cursor.fetchall():
                        if name := re.fullmatch(r"SCAN (\w+)", row[3]):
                            found.add(aliases.get(str(name[1]), str(name[1])))
        return sorted(found & self.large)


@dataclass(frozen=True)
class Cost:
    """What one page cost, in milliseconds: the processor time of this process, and the server's apart."""

    title: str
    name: str
    median_ms: float
    p95_ms: float
    process_ms: float
    process_p95_ms: float
    server_ms: float | None
    queries: int
    bytes: int
    scans: list[str]


def large_tables() -> set[str]:
    """Return the tables with more than LARGE rows."""
    from django.apps import apps

    models = [model for model in apps.get_models() if model._meta.app_label == "jobs"]
    return {m._meta.db_table for m in models if m._default_manager.all()[: LARGE + 1].count() > LARGE}


class Browser:
    """A person of the group `admin`, logged in; and nobody, for the page that asks who that is."""

    def __init__(self, server_pid: int | None) -> None:
        self.server_pid = server_pid
        self.client, self.nobody = Client(SERVER_NAME="localhost"), Client(SERVER_NAME="localhost")
        user = get_user_model().objects.get(username=PERSON)
        if user.is_superuser:
            raise BenchFailed("a superuser asks for no permission, so its pages would cost less")
        self.client.force_login(user)
        session = self.client.session
        proof.note(session)
        session.save()
        self.large = large_tables()
        self.scans: Scans = (PostgresScans if connection.vendor == "postgresql" else SqliteScans)(self.large)

    def measure(self, page: Page, rounds: int) -> Cost:
        """Ask for a page once to warm up, once more to count its queries, then `rounds` times."""
        seen = Seen()
        self.scans.begin()
        self.ask(page)
        with connection.execute_wrapper(seen):
            length = self.ask(page)
        walls, processes = [], []
        server = self._server_seconds()
        for _ in range(rounds):
            wall, process = time.perf_counter(), time.process_time()
            self.ask(page)
            walls.append((time.perf_counter() - wall) * 1000)
            processes.append((time.process_time() - process) * 1000)
            garbage.tidy()  # as the web server does, once the answer has been sent
        used = self._server_seconds()
        walls.sort()
        processes.sort()
        return Cost(
            title=page.title,
            name=page.name,
            median_ms=median(walls),
            p95_ms=quantile(walls, 0.95),
            process_ms=median(processes),
            process_p95_ms=quantile(processes, 0.95),
            server_ms=None if used is None or server is None else (used - server) * 1000 / rounds,
            queries=len(seen.statements),
            bytes=length,
            scans=self.scans.since(seen),
        )

    def ask(self, page: Page) -> int:
        """Ask once; returns the length of the answer. Raises BenchFailed where its status is another."""
        headers = {"HX-Request": "true", "HX-Target": page.region} if page.region else {}
        answer = (self.client if page.logged_in else self.nobody).get(page.url, headers=headers)
        if answer.status_code != page.answer:
            raise BenchFailed(
                f"{page.title} answered {answer.status_code} instead of {page.answer}: {page.url}"
            )
        return len(answer.content)

    def _server_seconds(self) -> float | None:
        return cpu_seconds(self.server_pid) if self.server_pid else None
