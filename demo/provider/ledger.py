"""The file that everything was written to before it was answered.

One connection, one transaction at a time, each on the disk (WAL, synchronous=FULL) when it returns:
what was answered survives a SIGKILL and a power cut, what was not answered may or may not be here.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.provider.message import Refused

# So that one GET /ledger cannot outgrow the memory.
ROWS = 100_000
SCHEMA = """
CREATE TABLE IF NOT EXISTS charge (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    key        TEXT NOT NULL,
    honoured   INTEGER NOT NULL,
    account    TEXT NOT NULL,
    amount     TEXT NOT NULL,
    currency   TEXT NOT NULL,
    invoice    TEXT NOT NULL,
    digest     TEXT,
    created_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS charge_key ON charge (key);
-- The promise of an idempotency key, held by the database.
CREATE UNIQUE INDEX IF NOT EXISTS charge_once ON charge (key) WHERE honoured;
-- Versions are appended; the highest is the resource. A version cannot be written twice.
CREATE TABLE IF NOT EXISTS version (
    seq        INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    etag       TEXT NOT NULL,
    key        TEXT,
    value      TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (name, version)
);
CREATE TABLE IF NOT EXISTS token (
    subject    TEXT PRIMARY KEY,
    highest    INTEGER NOT NULL
);
"""


class Ledger:
    """The open file. `transaction()` is the only way in."""

    def __init__(self, path: Path) -> None:
        # Held for each transaction, and told of its end.
        self._turn = threading.Condition(threading.Lock())
        # Autocommit, so that BEGIN and COMMIT are where we wrote them.
        self._connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(SCHEMA)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all of the block, durably, or nothing of it."""
        with self._turn:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # A COMMIT that failed may have ended the transaction already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._turn.notify_all()

    def wait(self, charges: int, seconds: float) -> None:
        """Return once there are so many charges, or the time is over."""
        with self._turn:
            self._turn.wait_for(lambda: self._charges() >= charges, seconds)

    def reset(self) -> None:
        """Forget everything that was ever charged, written or seen."""
        with self.transaction() as connection:
            for table in ("charge", "version", "token"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608

    def close(self) -> None:
        """Close the file once the transaction under way has ended."""
        with self._turn:
            self._connection.close()

    def _charges(self) -> int:
        (count,) = self._connection.execute("SELECT COUNT(*) FROM charge").fetchone()
        return int(count)


def next_seq(connection: sqlite3.Connection, table: str) -> int:
    """Return the number of the next row; Refused when the ledger is full."""
    (last,) = connection.execute(f"SELECT COALESCE(MAX(seq), 0) FROM {table}").fetchone()  # noqa: S608
    if last >= ROWS:
        raise Refused(507, "ledger_full", f"The ledger has {ROWS} rows, its limit.")
    return int(last) + 1
