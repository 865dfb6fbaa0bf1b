"""Reading beside the protocol: lists, figures and probes that must neither wait for writers nor make them wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime

from django.db import transaction

from jobs.ledger.session import Session
from jobs.vocabulary import JOB

# A large table that was never analysed, or was analysed while nothing ran, must not be read from end to end;
# whoever asks for what takes longer is told so, instead of holding a thread of the server.
OPEN_READING = (
    "SET LOCAL statement_timeout = '5s'; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;"
    " SET LOCAL jit = off"
)


@contextmanager
def reading(using: str, *, now: datetime | None = None) -> Iterator[Session]:
    """Yield a session that only reads: on SQLite without its write lock, on PostgreSQL for seconds at most."""
    session = Session(using, JOB, now)
    # BEGIN IMMEDIATE would make whoever asks for figures wait for every writer, and every writer for him.
    with transaction.atomic(using=using) if session.locks_rows else nullcontext():
        if session.locks_rows:
            session.run(OPEN_READING)
        yield session
