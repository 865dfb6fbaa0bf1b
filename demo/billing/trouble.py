"""The trouble that the demonstration's payment service makes, so that there is something to rule on.

The answer to one charge is lost, and the service does not answer inquiries about it. The latter is ordered
anew at each start, because the service forgets it with its end; the loss while the invoice is not billed.
"""

from __future__ import annotations

import json
import urllib.request

from django.conf import settings

INVOICE = "INV-1003"
SECONDS = 5
OFTEN = 10_000


def order(*, lose_answer: bool) -> None:
    """Have the service misbehave for one invoice; raises OSError where it cannot be reached."""
    _fault({"kind": "error", "on": "inquire", "times": OFTEN})
    if lose_answer:
        _fault({"kind": "drop"})


def _fault(fault: dict[str, object]) -> None:
    body = json.dumps({**fault, "match": {"invoice": INVOICE}}).encode()
    address = settings.DEMO_PROVIDER_URL.rstrip("/") + "/faults"
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=SECONDS):
        pass
