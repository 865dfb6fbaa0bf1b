"""An order to charge, read from a request."""

import re
from dataclasses import dataclass
from typing import Any

from demo.provider.message import Refused, Request, invalid

KEY = re.compile(r"[!-~]{1,200}")
TOKEN = re.compile(r"[0-9]{1,18}")
AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,4})?")
CURRENCY = re.compile(r"[A-Z]{3}")
TEXT_CHARS = 200
FIELDS = ("account", "amount", "currency", "invoice")


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be charged. Two orders are the same when every field is."""

    account: str
    amount: str
    currency: str
    invoice: str
    digest: str | None = None  # the caller's own name for the content, kept and returned

    @classmethod
    def read(cls, request: Request) -> "Order":
        """Return the order in the body; Refused names the first field that is wrong."""
        given = request.json()
        for name in given:
            if name not in (*FIELDS, "digest"):
                raise Refused(422, "invalid", "There is a field that is not known.", field=name[:TEXT_CHARS])
        fields = {name: _text(name, given.get(name)) for name in FIELDS}
        if not AMOUNT.fullmatch(fields["amount"]) or not fields["amount"].strip("0."):
            raise invalid("amount", 'must be a positive decimal in a string, as in "12.50"')
        if not CURRENCY.fullmatch(fields["currency"]):
            raise invalid("currency", "must be three capital letters")
        digest = _text("digest", given["digest"]) if given.get("digest") is not None else None
        return cls(**fields, digest=digest)


def key_of(request: Request) -> str:
    """Return the idempotency key; Refused without a usable one."""
    key = request.headers.get("idempotency-key", "")
    if not KEY.fullmatch(key):
        raise Refused(400, "key_required", "Idempotency-Key must have 1 to 200 visible ASCII characters.")
    return key


def token_of(request: Request) -> int | None:
    """Return the fencing token, if there is one; Refused when it is no integer."""
    token = request.headers.get("fencing-token")
    if token is None:
        return None
    if not TOKEN.fullmatch(token):
        raise Refused(400, "token_invalid", "Fencing-Token must be an integer of at most 18 digits.")
    return int(token)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid(name, "must be a string")
    # Printable also means: no NUL and no lone surrogate, which no database would take.
    if not 1 <= len(value) <= TEXT_CHARS or not value.isprintable():
        raise invalid(name, f"must have 1 to {TEXT_CHARS} printable characters")
    return value
