"""Brings the database and the static files up to date before serving: `python -m config.prepare [--demo]`.

A process of its own, so that the supervisor that runs it holds neither Django nor a connection.
"""

import os
import sys

import django
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import Error


def main(*, demo: bool) -> None:
    """Migrate, gather and, for the demonstration, seed; say each thing that is done."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.core.management import CommandError, call_command

    from config.gather import gather

    try:
        if missing := _missing_migrations():
            print(f"setup: applying {missing} migrations", flush=True)
            call_command("migrate", interactive=False, verbosity=0)
        try:
            if gather():
                print("setup: gathered style sheets and scripts", flush=True)
        except OSError as error:
            sys.exit(_unwritable("STATIC_ROOT", error))
        try:
            if demo:
                call_command("demo_seed")
        except OSError as error:
            sys.exit(_unwritable("MEDIA_ROOT", error))
    except CommandError as error:
        sys.exit(f"setup: {error}")
    except Error as error:
        sys.exit(f"setup: the database cannot be used: {str(error).strip().splitlines()[0]}.")


def _unwritable(setting: str, error: OSError) -> str:
    folder = getattr(settings, setting)
    return f"setup: {setting} names {folder}, which cannot be written ({error.strerror or error})."


def _missing_migrations() -> int:
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


if __name__ == "__main__":
    main(demo="--demo" in sys.argv[1:])
