"""The throw-away database of a drill: never the product's tables, and gone afterwards.

On SQLite a file in a temporary folder; on PostgreSQL a schema of its own on the product's server, which is
the only one its connection looks into. Both hold the tables that a claim reads and the job-state table, or,
for what has effect slots, all tables of the product with their guards.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.utils import load_backend
from django.utils.connection import ConnectionDoesNotExist
from django.utils.translation import gettext as _

from config.env import parse_database
from jobs.drills.model import JobState
from jobs.drills.outside import OutsideLedger
from jobs.ledger import install
from jobs.models import Scheduler, Worker

ALIAS = "drill"
CHOICES = ("current", "sqlite", "postgresql")


class CannotDrill(Exception):
    """No throw-away database can be made here."""


@dataclass(frozen=True)
class ThrowAway:
    """An open throw-away database, under the alias `drill`, and the outside world beside it."""

    vendor: str
    place: str
    """Where it is, in words."""
    config: dict[str, Any]
    outside: OutsideLedger

    def reopen(self) -> None:
        """Close the connection for good and open another, as a new process would find the database."""
        _disconnect()
        _connect(self.config)


@contextmanager
def throw_away(choice: str = "current", *, product: bool = False) -> Iterator[ThrowAway]:
    """Make a database for the length of the block; removed also when the block raises or is interrupted.

    `choice` is `sqlite`, `postgresql`, or `current` for what the product runs on. With `product` it has all
    the product's tables and guards, empty. Raises CannotDrill.
    """
    vendor = connections[DEFAULT_DB_ALIAS].vendor if choice == "current" else choice
    if _is_connected():
        raise CannotDrill(_("A drill is already running in this thread."))
    undo = ExitStack()
    try:
        folder = Path(tempfile.mkdtemp(prefix="interlock-drill-"))
        undo.callback(shutil.rmtree, folder)
        schema = f"interlock_drill_{secrets.token_hex(6)}"
        config = _file(folder / "drill.sqlite3") if vendor == "sqlite" else _server(schema)
        _connect(config)
        undo.callback(_disconnect)
        if vendor == "sqlite":
            place = _("a temporary SQLite file")
        else:
            place = _("a temporary schema on the PostgreSQL server")
            undo.callback(_drop, schema)
            _create(schema)
        _lay_tables(product=product)
        yield ThrowAway(vendor, place, config, OutsideLedger(folder / "outside"))
    finally:
        with _undisturbed():
            undo.close()


def _connect(config: dict[str, Any]) -> None:
    # This thread's alone: no other thread, and no loop over the configured databases, comes across it.
    connections[ALIAS] = load_backend(config["ENGINE"]).DatabaseWrapper(config, ALIAS)


def _disconnect() -> None:
    connections[ALIAS].close()
    del connections[ALIAS]


def _is_connected() -> bool:
    try:
        connections[ALIAS]
    except ConnectionDoesNotExist:
        return False
    return True


def _file(path: Path) -> dict[str, Any]:
    nothing = dict.fromkeys(("USER", "PASSWORD", "HOST", "PORT"), "")
    engine = {"ENGINE": "django.db.backends.sqlite3", "NAME": path, "OPTIONS": settings.SQLITE_OPTIONS}
    return {**_product(), **nothing, **deepcopy(engine)}


def _server(schema: str) -> dict[str, Any]:
    config = _product()
    if not config["ENGINE"].endswith("postgresql"):
        raise CannotDrill(_("DATABASE_URL does not name a PostgreSQL server."))
    if settings.DATABASE_DIRECT_URL:
        # A pooler hands the same session to strangers, with our search_path still in it.
        direct = parse_database("DATABASE_DIRECT_URL", settings.DATABASE_DIRECT_URL)
        config = {**config, **direct, "OPTIONS": {**config["OPTIONS"], **direct["OPTIONS"]}}
    options = config["OPTIONS"]
    options["options"] = f"{options.get('options', '')} -c search_path={schema}".strip()
    return config


def _product() -> dict[str, Any]:
    config: dict[str, Any] = deepcopy(connections[DEFAULT_DB_ALIAS].settings_dict)
    return config


def _create(schema: str) -> None:
    try:
        _execute(f'CREATE SCHEMA "{schema}"')
    except Error as error:
        reason = str(error).strip().splitlines()[0]
        raise CannotDrill(
            _("No temporary schema can be made on the PostgreSQL server: %(reason)s.") % {"reason": reason}
        ) from error


def _drop(schema: str) -> None:
    # The old connection may be in the middle of anything.
    connections[ALIAS].close()
    _execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


def _execute(statement: str) -> None:
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(statement)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let a second Ctrl-C wait until everything is removed."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _lay_tables(*, product: bool) -> None:
    models: list[Any] = [Scheduler, Worker]
    if product:
        # People too: an approval is given by one.
        people = [ContentType, Permission, Group, get_user_model()]
        models = [*people, *apps.get_app_config("jobs").get_models()]
    with connections[ALIAS].schema_editor() as editor:
        for model in (*models, JobState):
            editor.create_model(model)
    if product:
        install.lay(ALIAS)
    else:
        install.lay_scheduler(ALIAS)
