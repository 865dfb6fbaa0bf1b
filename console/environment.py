"""What the bar on top says of this installation: which one it is, its database, its epoch, its clock."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.utils.translation import gettext as _

from jobs.explain import Surroundings


@dataclass(frozen=True)
class Database:
    """What keeps the jobs."""

    name: str
    embedded: bool

    @property
    def limits(self) -> str:
        """What this kind of database costs."""
        if self.embedded:
            return _("one file, one writer at a time, no standby")
        return _("many writers; a synchronous standby is yours to keep")


def database() -> Database:
    """Return the database's name and version; asks it nothing that it has not said already."""
    if settings.EMBEDDED:
        return Database(f"SQLite {sqlite3.sqlite_version}", embedded=True)
    version: Any = getattr(connection, "pg_version", 0)
    return Database(f"PostgreSQL {version // 10_000}", embedded=False)


def word() -> str:
    """Return the word that tells this installation from another; never translated, never without colour."""
    if settings.DEBUG:
        return "DEV"
    return "DEMO" if settings.DEMO else "PROD"


def surroundings(request: HttpRequest) -> Surroundings:
    """Return what was read of the cluster for this request, so that bar, menu and page read it once."""
    around: Surroundings | None = getattr(request, "surroundings", None)
    if around is None:
        around = Surroundings()
        request.surroundings = around  # type: ignore[attr-defined]
    return around
