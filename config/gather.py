"""Gathers style sheets and scripts for serving, only when one of them changed."""

import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command


def gather() -> bool:
    """Bring STATIC_ROOT up to date and return whether anything was to be done.

    Compressing takes seconds, comparing sizes and times milliseconds: those of the last time are kept.
    """
    root = Path(settings.STATIC_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    note, state = root / ".gathered", _state()
    if not settings.STATIC_HASHED or (note.exists() and note.read_text("utf-8") == state):
        return False
    # Without --clear: a page that is open now still asks for the old names.
    call_command("collectstatic", interactive=False, verbosity=0)
    note.write_text(state, "utf-8")
    return True


def _state() -> str:
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list(ignore_patterns=None):
            status = Path(storage.path(name)).stat()
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
