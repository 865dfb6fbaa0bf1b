"""Sessions of the console that end before their time, because what opens the account changed.

A changed password needs none of this: each session carries a sum over the password, and is worth nothing once
the new one is stored.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone


def end(user: Any, *, keep: str | None, using: str) -> None:
    """End the person's sessions but the one whose key is `keep`.

    Call it inside the transaction of the change, the person's row locked: a log-in locks it too, so that a
    session either is found here or was opened under what holds now. Whose a session is stands inside it, so
    all that have not expired are read: people of one installation, and seldom.
    """
    sessions = Session.objects.using(using)
    there = sessions.filter(expire_date__gt=timezone.now()).exclude(session_key=keep or "")
    theirs = [row.pk for row in there.iterator() if row.get_decoded().get(SESSION_KEY) == str(user.pk)]
    sessions.filter(pk__in=theirs).delete()
