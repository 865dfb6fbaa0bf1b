"""Sessions in the database, looked up only by what can be one of our keys."""

from typing import Any

from django.contrib.sessions.backends import db


class SessionStore(db.SessionStore):
    """Takes a cookie that is no key of ours for no session.

    Cookies are unquoted, so that one may hold U+0000, and PostgreSQL refuses the very question.
    """

    def _validate_session_key(self, key: Any) -> bool:
        return isinstance(key, str) and key.isascii() and key.isalnum() and 8 <= len(key) <= 40
