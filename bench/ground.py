"""Where is measured: a database made for the run, on a disk, with every promise of durability kept."""

import contextlib
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bench.procs import ROOT, cpu_seconds
from bench.sides import Side
from tests import pgtemp

CALIBRATION_SECONDS = 0.4
SCRATCH = ROOT / "var/bench"

# A check-point that falls into one measure and not into the next would be noise, so there is none in a run.
POSTGRESQL = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "1GB",
    "checkpoint_timeout": "30min",
    "max_wal_size": "8GB",
}


class Usage(NamedTuple):
    """What the server has used so far; None where there is no server."""

    cpu_seconds: float | None
    wal_bytes: int | None


class Asked(NamedTuple):
    """How much the database was asked so far; None where nobody counts."""

    statements: int | None
    transactions: int | None


class Ground(Protocol):
    """A kind of database, and the one database of the measure at hand."""

    name: str
    folder: Path

    def facts(self) -> dict[str, str]: ...
    def prepare(self, side: Side) -> None: ...
    def fresh(self, side: Side) -> str: ...
    def count(self, sql: str) -> int: ...
    def commits_per_s(self) -> int: ...
    def usage(self) -> Usage: ...
    def asked(self) -> Asked: ...
    def connections(self) -> int | None: ...


class Postgres:
    """A private server; each side has a template database that a fresh one is copied from."""

    name = "postgresql"

    def __init__(self, server: pgtemp.Server) -> None:
        import psycopg

        self.server = server
        self.folder = server.base
        self._psycopg = psycopg
        self.admin = psycopg.connect(server.url, autocommit=True)
        self.counts_statements = "shared_preload_libraries" in server.settings
        if self.counts_statements:
            self.admin.execute("CREATE EXTENSION pg_stat_statements")
        self.admin.execute(
            "CREATE TABLE calibration (id bigint GENERATED ALWAYS AS IDENTITY, at timestamptz)"
        )
        self._inside: psycopg.Connection[Any] | None = None

    def facts(self) -> dict[str, str]:
        version = self.server.run("postgres", "--version").stdout.decode().split()[-1]
        settings = ", ".join(f"{name} {value}" for name, value in POSTGRESQL.items())
        return {"version": f"PostgreSQL {version}", "settings": f"{settings}, the rest as it comes"}

    def prepare(self, side: Side) -> None:
        self.admin.execute(f"CREATE DATABASE template_{side.name}")
        side.ask(self.server.url_of(f"template_{side.name}"), "prepare")

    def fresh(self, side: Side) -> str:
        if self._inside:
            self._inside.close()
        self.admin.execute("DROP DATABASE IF EXISTS bench WITH (FORCE)")
        self.admin.execute(f"CREATE DATABASE bench TEMPLATE template_{side.name}")
        url = self.server.url_of("bench")
        self._inside = self._psycopg.connect(url, autocommit=True)
        return url

    def count(self, sql: str) -> int:
        assert self._inside is not None
        return int(self._inside.execute(sql).fetchone()[0])  # type: ignore[index]

    def commits_per_s(self) -> int:
        done, began = 0, time.monotonic()
        while (passed := time.monotonic() - began) < CALIBRATION_SECONDS:
            self.admin.execute("INSERT INTO calibration (at) VALUES (now())")
            done += 1
        return round(done / passed)

    def usage(self) -> Usage:
        assert self.server.process is not None
        row = self.admin.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").fetchone()
        assert row is not None
        return Usage(cpu_seconds(self.server.process.pid), int(row[0]))

    def asked(self) -> Asked:
        statements = None
        if self.counts_statements:
            row = self.admin.execute(
                "SELECT COALESCE(sum(s.calls), 0) FROM pg_stat_statements s"
                " JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = 'bench'"
            ).fetchone()
            statements = int(row[0]) if row else None
        row = self.admin.execute(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'bench'"
        ).fetchone()
        return Asked(statements, int(row[0]) if row else None)

    def connections(self) -> int | None:
        """Return how many connections others have to the measure's database."""
        return self.count(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )


class Sqlite:
    """A file; a fresh one is a copy of the migrated one."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "bench.sqlite3"

    def facts(self) -> dict[str, str]:
        return {
            "version": f"SQLite {sqlite3.sqlite_version}",
            "settings": "a file, journal_mode WAL, synchronous FULL, as the product sets them",
        }

    def prepare(self, side: Side) -> None:
        side.ask(f"sqlite:///{self.folder}/{side.name}.sqlite3", "prepare")

    def fresh(self, side: Side) -> str:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.file}{suffix}").unlink(missing_ok=True)
        shutil.copyfile(self.folder / f"{side.name}.sqlite3", self.file)
        return f"sqlite:///{self.file}"

    def count(self, sql: str) -> int:
        with contextlib.closing(sqlite3.connect(self.file, timeout=20)) as connection:
            return int(connection.execute(sql).fetchone()[0])

    def commits_per_s(self) -> int:
        path = self.folder / "calibration.sqlite3"
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("CREATE TABLE IF NOT EXISTS calibration (id INTEGER PRIMARY KEY, at TEXT)")
            done, began = 0, time.monotonic()
            while (passed := time.monotonic() - began) < CALIBRATION_SECONDS:
                connection.execute("INSERT INTO calibration (at) VALUES (datetime())")
                done += 1
        return round(done / passed)

    def usage(self) -> Usage:
        return Usage(None, None)

    def asked(self) -> Asked:
        # SQLite is a library: only the process itself sees its statements.
        return Asked(None, None)

    def connections(self) -> int | None:
        return None


@contextlib.contextmanager
def postgresql() -> Iterator[Postgres]:
    """Run a private server for the length of the block."""
    settings = dict(POSTGRESQL)
    if any(pgtemp.find_binaries().parent.rglob("pg_stat_statements.so")):
        settings["shared_preload_libraries"] = "pg_stat_statements"
    with pgtemp.server(**settings) as server:
        ground = Postgres(server)
        try:
            yield ground
        finally:
            ground.admin.close()


@contextlib.contextmanager
def sqlite() -> Iterator[Sqlite]:
    """Use a folder beside the product's own database for the length of the block."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sqlite-", dir=SCRATCH) as folder:
        yield Sqlite(Path(folder))


GROUNDS: dict[str, Callable[[], AbstractContextManager[Ground]]] = {
    "postgresql": postgresql,
    "sqlite": sqlite,
}
