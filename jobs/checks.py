"""System checks: what would make the protocol's promises untrue, said before anything runs.

Settings are judged at every start; the database server is asked with `check --deploy` only.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Info, register
from django.db import DatabaseError, connections

from jobs import handlers

OLDEST_SQLITE = (3, 35, 0)
READ_COMMITTED = 2


@register()
def leases(**_more: Any) -> list[CheckMessage]:
    """E001: two lost heartbeats must not cost a healthy job its lease."""
    beat, standard = settings.INTERLOCK["HEARTBEAT_SECONDS"], settings.INTERLOCK["LEASE_SECONDS"]
    return [
        Error(
            f"Kind {handler.name}: lease of {handler.lease or standard} s, less than 3 beats of {beat} s.",
            hint="Lengthen its lease, or set INTERLOCK_HEARTBEAT_SECONDS lower.",
            obj=handler.name,
            id="interlock.E001",
        )
        for handler in handlers.registered()
        if (handler.lease or standard) < 3 * beat
    ]


@register()
def sqlite(**_more: Any) -> list[CheckMessage]:
    """E002 to E004: SQLite must lock at BEGIN, keep what it acknowledged, and know RETURNING."""
    found: list[CheckMessage] = []
    for alias in connections:
        database = connections[alias].settings_dict
        if not database["ENGINE"].endswith("sqlite3"):
            continue
        options = database["OPTIONS"]
        if str(options.get("transaction_mode", "")).upper() not in ("IMMEDIATE", "EXCLUSIVE"):
            found.append(
                Error(
                    f"Database {alias}: transactions begin without the write lock.",
                    hint="Set OPTIONS['transaction_mode'] to 'IMMEDIATE': a later lock may fail under load.",
                    id="interlock.E002",
                )
            )
        if not re.search(
            r"synchronous\s*=\s*(full|extra|2|3)\b", str(options.get("init_command", "")), re.IGNORECASE
        ):
            found.append(
                Error(
                    f"Database {alias}: a power cut may take back a commit that was acknowledged.",
                    hint="Put PRAGMA synchronous=FULL into OPTIONS['init_command'].",
                    id="interlock.E003",
                )
            )
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            found.append(
                Error(
                    f"SQLite {sqlite3.sqlite_version} is too old: 3.35 is the first with RETURNING.",
                    hint="Use a Python that is built with a newer SQLite.",
                    id="interlock.E004",
                )
            )
    return found


@register()
def isolation(**_more: Any) -> list[CheckMessage]:
    """I001: at a higher level a caller's own transaction may have to be run again."""
    return [
        Info(
            f"Database {alias}: transactions are not READ COMMITTED unless the ledger begins them.",
            hint="The fence holds at every level, but an enqueue inside your own transaction may then fail "
            "with a serialisation error, and only you can run that transaction again.",
            id="interlock.I001",
        )
        for alias in connections
        if connections[alias].settings_dict["ENGINE"].endswith("postgresql")
        and connections[alias].settings_dict["OPTIONS"].get("isolation_level", READ_COMMITTED)
        != READ_COMMITTED
    ]


@register(deploy=True)
def durability(**_more: Any) -> list[CheckMessage]:
    """E005: a server that may forget a commit hands out one generation twice (W001: not to be asked)."""
    from jobs.ledger import metrics

    found: list[CheckMessage] = []
    for alias in connections:
        try:
            unsafe = metrics.unsafe_settings(alias)
        except DatabaseError:
            hint = "Run this where the database can be reached."
            found.append(checks.Warning(f"Database {alias} cannot be asked.", hint=hint, id="interlock.W001"))
            continue
        found += [
            Error(
                f"Database {alias}: the server runs with {name} off, so that it may forget a commit.",
                hint=f"Set {name} = on.",
                id="interlock.E005",
            )
            for name in sorted(unsafe)
        ]
    return found


@register(deploy=True)
def encoding(**_more: Any) -> list[CheckMessage]:
    """E006: an argument or an error text that the database cannot hold would fail its job."""
    from jobs.ledger import metrics

    found: list[CheckMessage] = []
    for alias in connections:
        try:
            name = metrics.encoding(alias)
        except DatabaseError:
            continue  # W001 says so
        if name != "UTF8":
            found.append(
                Error(
                    f"Database {alias}: its encoding is {name}, which does not hold every text.",
                    hint="Make the database with ENCODING 'UTF8'.",
                    id="interlock.E006",
                )
            )
    return found
