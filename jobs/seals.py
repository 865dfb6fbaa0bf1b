"""Seals: HMAC-SHA256 under a key that the database does not hold, so that whoever owns it can forge none.

A key is named by the first eight digits of its SHA-256. AUDIT_KEY seals; AUDIT_OLD_KEYS are only compared
with, so that a chain outlives the rotation of its key (docs/audit.md).
"""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings

from jobs import canon
from jobs.canon import Json


def key_id(key: str) -> str:
    """Return the name that a key is known by in entries and anchors."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def keyring() -> dict[str, str]:
    """Return every key that a seal may have been made with, by its name."""
    return {key_id(key): key for key in (*settings.AUDIT_OLD_KEYS, settings.AUDIT_KEY)}


def seal(key: str, previous: str, fields: dict[str, Json]) -> str:
    """Return the seal over `fields` and, through `previous`, over everything before them."""
    text = previous + canon.canonical(fields, limit=canon.LONGEST_TEXT)
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def same(a: str, b: str) -> bool:
    """Compare two seals in a time that tells nothing; text from outside need not be ASCII."""
    return hmac.compare_digest(a.encode(errors="surrogatepass"), b.encode(errors="surrogatepass"))
