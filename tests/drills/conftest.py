"""What a drill must leave as it found it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from jobs.drills import database


def everything(folder: Path) -> dict[str, Any]:
    """Return all files of the temporary folder, databases, schemas, connections and the product's rows."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        places = []
        if connection.vendor == "postgresql":
            # Others may work on this server meanwhile, in databases of their own.
            cursor.execute(
                "SELECT datname FROM pg_database WHERE datname LIKE '%drill%'"
                " UNION ALL SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg!_%' ESCAPE '!'"
            )
            places = sorted(row[0] for row in cursor.fetchall())
    return {
        "files": sorted(str(path) for path in folder.rglob("*")),
        "places": places,
        "tables": sorted(tables),
        "connections": database._is_connected(),
        "rows": {
            model._meta.label: sorted(map(repr, model._base_manager.values_list()))
            for model in apps.get_app_config("jobs").get_models()
        },
    }


@pytest.fixture
def unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, db: None) -> Iterator[Callable[[], Any]]:
    """Fail when the test leaves something behind; its temporary files go to a folder of their own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = everything(tmp_path)
    yield lambda: everything(tmp_path)
    assert everything(tmp_path) == before
