"""What is said to the payment service, and what its answers prove.

Only an answer that can be read is one. A status that the service does not document, a body that is no JSON, a
connection that breaks: whatever they were, they are no proof that nothing was charged.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

from django.conf import settings

from jobs.effect_kinds import AlreadyThere, Declined, Found, NotFound, NotSent, Request, Sent

SECONDS = 5
"""How long we wait for each step of an answer; the service may act later all the same."""
MOST_BYTES = 256 * 1024
FIELDS = ("account", "amount", "currency", "invoice")
DECLINED = "PAYMENT_DECLINED_FAILED"
REFUSED = "PAYMENT_VALIDATION_FAILED"


class Unreadable(Exception):
    """An answer that says nothing about what was done."""


def charge(request: Request) -> Sent:
    """Charge an invoice under the effect's key; raises what the answer proves."""
    try:
        status, body = _ask("charges", request, json.dumps(request.payload).encode())
    except urllib.error.HTTPError as answer:
        raise _refusal(answer) from None
    if status not in (200, 201) or not isinstance(body, dict):
        raise Unreadable(f"status {status} with a {type(body).__name__}")
    return Sent(_record(body), str(body["id"]))


def look(request: Request) -> Found | NotFound:
    """Ask what was charged under the effect's key."""
    try:
        _, body = _ask(f"charges?key={quote(request.key, safe='')}", request)
    except urllib.error.HTTPError as answer:
        if answer.code == 404 and _said(answer).get("code") == "not_found":
            return NotFound()
        raise
    first = body["charges"][0]
    return Found(_record(first), str(first["id"]), payload={name: first[name] for name in FIELDS})


def _record(body: dict[str, Any]) -> dict[str, Any]:
    """Return what every later run is given: the same whether it was charged now or had been before."""
    if missing := [name for name in ("id", *FIELDS) if not isinstance(body.get(name), str)]:
        raise Unreadable(f"a record without {missing[0]}")
    return {"charge": body["id"], **{name: body[name] for name in FIELDS}}


def _refusal(answer: urllib.error.HTTPError) -> Exception:
    """Return what an answer that is an error proves."""
    said = _said(answer)
    message = str(said.get("message", ""))[:500]
    match answer.code, said.get("code"):
        case 402, _:
            return Declined(DECLINED, message)
        case ((400 | 422), str()):
            return Declined(REFUSED, " ".join(filter(None, (str(said.get("field", "")), message))))
        case 409, _:
            return AlreadyThere(message)
    return Unreadable(f"status {answer.code} {message}".strip())


def _said(answer: urllib.error.HTTPError) -> dict[str, Any]:
    """Return the body of an error as the service writes them; nothing where it is somebody else's."""
    with answer:
        try:
            body = json.loads(answer.read(MOST_BYTES))
        except (OSError, ValueError):
            return {}
    return body if isinstance(body, dict) else {}


def _ask(path: str, request: Request, data: bytes | None = None) -> tuple[int, Any]:
    if not settings.DEMO_PROVIDER_URL:
        raise NotSent("DEMO_PROVIDER_URL names no payment service")
    headers = {"Idempotency-Key": request.key, "Content-Type": "application/json"}
    if request.fencing_token:
        headers["Fencing-Token"] = str(request.fencing_token)
    asked = urllib.request.Request(settings.DEMO_PROVIDER_URL.rstrip("/") + "/" + path, data, headers)  # noqa: S310
    with _OPENER.open(asked, timeout=SECONDS) as answer:
        text = answer.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise Unreadable(f"more than {MOST_BYTES} bytes")
        return answer.status, json.loads(text)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Sends nothing to where nobody told us to: what stood before a redirect may have charged."""

    def redirect_request(self, *_: Any) -> None:
        return None


# No proxy of this machine's either: what it answers is not the service's word.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)
