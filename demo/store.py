"""Where documents come from and where results go: Django storage, under keys that never lie.

A source is stored under the digest of its bytes, so that a second attempt reads what the first one
read. A result is stored under its attempt's id, so that a late attempt's file is never the job's.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.files import File
from django.core.files.storage import default_storage

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def safe_name(name: str) -> str:
    """Return a file name that any storage takes: letters, digits, dot, dash and underscore, at most 100."""
    stem, dot, extension = name.rpartition(".")
    stem, extension = (stem, extension) if stem else (extension, "")
    stem = _UNSAFE.sub("-", stem).strip("-.")[:80] or "document"
    return f"{stem}{dot if extension else ''}{_UNSAFE.sub('', extension)[:16]}"


def keep_source(path: Path) -> str:
    """Copy a file into storage and return its key; the same bytes under the same name are kept once.

    Raises OSError when the file cannot be read.
    """
    with path.open("rb") as source:
        digest = hashlib.file_digest(source, "sha256").hexdigest()
        key = f"sources/{digest[:32]}/{safe_name(path.name)}"
        if not default_storage.exists(key):
            source.seek(0)
            default_storage.save(key, File(source))
    return key


@contextmanager
def local_copy(key: str) -> Iterator[Path]:
    """Yield a path of the stored file on this machine, for a program that wants one.

    A missing file yields a path that does not exist: whoever opens it says so in their own words.
    """
    try:
        yield Path(default_storage.path(key))
    except NotImplementedError:  # a storage on another machine
        with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
            path = Path(folder, Path(key).name)
            if default_storage.exists(key):
                with default_storage.open(key) as stored, path.open("wb") as copy:
                    shutil.copyfileobj(stored, copy)
            yield path


def keep_result(path: Path, key: str) -> None:
    """Move a finished file into storage under `key`; the same attempt may store it again."""
    if default_storage.exists(key):
        default_storage.delete(key)
    with path.open("rb") as result:
        stored = default_storage.save(key, File(result))
    if stored != key:
        raise OSError(f"storage put {key} elsewhere: {stored}")
