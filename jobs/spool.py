"""Reports that the database would not hear: kept on disk, and told at the next start (contract §4).

A report is the only proof that something was done outside. One file each, synced, taken away when it was
heard.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings

log = logging.getLogger("interlock.effects")


def folder() -> Path:
    """Return where reports are kept."""
    return Path(settings.SPOOL)


def keep(values: dict[str, Any]) -> Path:
    """Keep one report; it is on the disk when this returns."""
    place = folder()
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = place / f"{uuid.uuid4().hex}.json"
    part = path.with_suffix(".part")
    try:
        _write(part, json.dumps(values))
        part.rename(path)
    except OSError:
        part.unlink(missing_ok=True)  # of a full disk it would take what there is left
        raise
    sync = os.open(place, os.O_RDONLY)
    try:
        os.fsync(sync)
    finally:
        os.close(sync)
    return path


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def kept() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield what is kept, oldest first; a file that cannot be read is left where it is and told of."""
    place = folder()
    if not place.is_dir():
        return
    for path in sorted(place.glob("*.json"), key=_age):
        try:
            values = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            continue  # another worker of this machine has told it meanwhile
        except (OSError, ValueError):
            log.exception("kept report cannot be read", extra={"file": path.name})
            continue
        yield path, values


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def forget(path: Path) -> None:
    """Take away a report that was heard."""
    path.unlink(missing_ok=True)
