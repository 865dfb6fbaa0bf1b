"""Writes var/env with fresh secrets, once; an existing file is left as it is."""

import os
import secrets
from pathlib import Path

from config.env import ROOT

PLACE = ROOT / "var" / "env"


def write(place: Path = PLACE) -> bool:
    """Create the file, readable by its owner only, and return whether it was missing."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        # Created with its rights: between an open and a chmod the secrets would lie open.
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            "# Settings of this installation; the environment overrules them. See docs/settings.md.\n"
            f"SECRET_KEY={secrets.token_urlsafe(48)}\n"
            f"AUDIT_KEY={secrets.token_urlsafe(48)}\n"
            "DATABASE_URL=sqlite:///var/interlock.sqlite3\n"
        )
    return True


if __name__ == "__main__":
    if write():
        print("setup: wrote var/env with fresh secrets and a SQLite database")
