"""The web server that is fuzzed, before the database of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from django.db import connections

from bench.web import START_SECONDS
from tests.processes import gunicorn
from tests.processes.databases import ground_of

RATES = {f"INTERLOCK_RATE_{name}": "0" for name in ("READ", "ENQUEUE", "WORKER", "OPERATE")}


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run gunicorn for the length of the block; yields its address."""
    url = ground_of("default", folder).url(connections["default"].settings_dict["NAME"])
    log = folder / "web.log"
    web, root = gunicorn.start("tests.fuzz.site:application", {**RATES, "DATABASE_URL": url}, log)
    try:
        try:
            urlopen(f"{root}/readyz", timeout=START_SECONDS).close()
        except OSError:
            said = log.read_text(errors="replace")[-2000:]
            raise AssertionError(f"the web server did not start\n{said}") from None
        yield root
    finally:
        web.terminate()
        web.wait()
