"""Documents that are only written by who has seen their latest version."""

import hashlib
import json
import re
import sqlite3
from datetime import UTC, datetime
from typing import Any

from demo.provider import fencing
from demo.provider.ledger import Ledger, next_seq
from demo.provider.message import Refused, Request
from demo.provider.modes import Modes

NAME = re.compile(r"[A-Za-z0-9_.:-]{1,120}")
ETAG = re.compile(r'"[!#-~]{1,100}"')


def write(
    ledger: Ledger, modes: Modes, name: str, request: Request, key: str | None, token: int | None
) -> dict[str, Any]:
    """Append a version if the one that If-Match names is the latest; with If-None-Match: *, if there is none.

    Refused with 428 when neither is given, with 412 when the resource has moved on: nothing is written.
    """
    expected = _expected(request)
    value = json.dumps(request.json(), sort_keys=True)
    with ledger.transaction() as connection:
        if modes.fencing:
            fencing.check(connection, f"resource {name}", token)
        latest = _latest(connection, name)
        if (latest["etag"] if latest else None) != expected:
            raise Refused(412, "stale_etag", f"{name} is not at the version that was named.")
        version = latest["version"] + 1 if latest else 1
        # The version is in the tag: the same content again is still another version.
        tag = hashlib.sha256(f"{name} {version} {value}".encode()).hexdigest()[:16]
        seq, now = next_seq(connection, "version"), datetime.now(UTC).isoformat()
        new = (seq, name, version, f'"{version}-{tag}"', key, value, now)
        connection.execute("INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?)", new)
        row = connection.execute("SELECT * FROM version WHERE seq = ?", (seq,)).fetchone()
    return _shown(row)


def check(name: str, request: Request) -> None:
    """Refuse what could never be written, before anything is done about it."""
    if not NAME.fullmatch(name):
        raise Refused(404, "not_found", "A resource's name has 1 to 120 of A-Z a-z 0-9 _ . : -")
    _expected(request)
    request.json()


def history(ledger: Ledger, name: str | None = None, key: str | None = None) -> list[dict[str, Any]]:
    """Return the versions ever written in order, of one resource and under one key if they are given."""
    with ledger.transaction() as connection:
        rows = connection.execute(
            "SELECT * FROM version WHERE name = COALESCE(:name, name) AND key IS COALESCE(:key, key)"
            " ORDER BY seq",
            {"name": name, "key": key},
        ).fetchall()
    return [_shown(row) for row in rows]


def _expected(request: Request) -> str | None:
    """Return the ETag that must be the latest, None when there must be none."""
    if request.headers.get("if-none-match") == "*":
        return None
    tag = request.headers.get("if-match", "")
    if not ETAG.fullmatch(tag):
        raise Refused(428, "precondition_required", "If-Match must name one ETag, or If-None-Match be *.")
    return tag


def _latest(connection: sqlite3.Connection, name: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM version WHERE name = ? ORDER BY version DESC LIMIT 1", (name,)
    ).fetchone()
    return row


def _shown(row: sqlite3.Row) -> dict[str, Any]:
    return {
        "name": row["name"],
        "version": row["version"],
        "etag": row["etag"],
        "key": row["key"],
        "value": json.loads(row["value"]),
        "created_at": row["created_at"],
    }
