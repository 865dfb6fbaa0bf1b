"""Fencing tokens: the highest one seen for a subject refuses every lower one."""

import sqlite3

from demo.provider.ledger import Ledger
from demo.provider.message import Refused


def see(ledger: Ledger, subject: str, token: int | None) -> None:
    """Remember a token, whatever becomes of its request; Refused when a higher one was seen.

    A newer sender may be declined, and the older one must stay out all the same.
    """
    with ledger.transaction() as connection:
        check(connection, subject, token)
        if token is not None:
            connection.execute(
                "INSERT INTO token (subject, highest) VALUES (?, ?)"
                " ON CONFLICT (subject) DO UPDATE SET highest = MAX(highest, excluded.highest)",
                (subject, token),
            )


def check(connection: sqlite3.Connection, subject: str, token: int | None) -> None:
    """Refuse a token that is too low, or missing where others have shown one.

    Once more in the transaction that acts: a higher one may have been seen since.
    """
    row = connection.execute("SELECT highest FROM token WHERE subject = ?", (subject,)).fetchone()
    if row is not None and (token is None or token < row["highest"]):
        raise Refused(409, "stale_token", f"Token {token} is superseded: {row['highest']} was seen.")
