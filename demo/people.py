"""The demonstration's logins: one per role, because an approval takes two people."""

from __future__ import annotations

import secrets

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

ROLES = ("viewer", "operator", "adjudicator", "approver", "admin")


def make() -> list[tuple[str, str]]:
    """Give each role a login named like it, with a new password; returns (name, password) pairs.

    Passwords are made anew each time, because only their hashes are kept.
    """
    logins = []
    for role in ROLES:
        user, _ = get_user_model().objects.get_or_create(username=role, defaults={"is_staff": True})
        password = secrets.token_urlsafe(9)
        user.set_password(password)
        user.is_staff = True
        user.save()
        user.groups.set([Group.objects.get(name=role)])
        logins.append((role, password))
    return logins
