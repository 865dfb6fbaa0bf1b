"""Runs the demonstration's kinds over HTTP: a worker that needs neither Django nor the database.

    INTERLOCK_URL=http://127.0.0.1:8000/api/v1 INTERLOCK_TOKEN=ilk_… MEDIA_ROOT=var/media \\
        DEMO_PROVIDER_URL=http://127.0.0.1:9000/ PYTHONPATH=client:. python client/examples/worker.py

`documents.convert` reads its source from a folder that it shares with the server and uploads what it made;
`billing.charge` charges with the demonstration's payment service. SIGTERM ends it when its jobs have ended.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from demo import convert as converter
from interlock_client import (
    AlreadyThere,
    Client,
    Context,
    Declined,
    Effect,
    Fail,
    Found,
    Kind,
    NotFound,
    Problem,
    Request,
    Sent,
    Worker,
)

FIELDS = ("account", "amount", "currency", "invoice")


def convert(ctx: Context, source: str, to: str = "html", name: str = "") -> dict[str, Any]:
    """Convert a stored document, upload the result and name it."""
    shown = name or Path(source).name
    ctx.log(f"converting {shown} to {to}")

    def stop() -> bool:
        ctx.checkpoint()
        return False

    with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
        target = Path(folder, Path(shown).stem + converter.TARGETS.get(to, ""))
        try:
            summary = converter.convert_file(Path(MEDIA, source), target, to, should_stop=stop)
        except (converter.ConversionRefused, converter.ConverterUnavailable) as refused:
            raise Fail(refused.code.value, refused.message) from None
        key = ctx.upload(target)
    return {"file": key, **asdict(summary), "source": shown, "seconds": round(summary.seconds, 3)}


def bill(ctx: Context, invoice: str, account: str, amount: str, currency: str) -> Any:
    """Charge an invoice and return the payment service's record of it."""
    payload = {"account": account, "amount": amount, "currency": currency, "invoice": invoice}
    return ctx.effect("payments.charge", "charge", payload)


def charge(request: Request) -> Sent:
    """Charge under the effect's key. Only an answer that can be read proves anything."""
    headers = {"Idempotency-Key": request.key, "Fencing-Token": str(request.fencing_token)}
    answer = PROVIDER.post("charges", json=request.payload, headers=headers)
    body = answer.json()
    match answer.status_code:
        case 200 | 201:
            return Sent(_record(body), body["id"])
        case 402:
            raise Declined("PAYMENT_DECLINED_FAILED", body.get("message", ""))
        case 400 | 422:
            raise Declined("PAYMENT_VALIDATION_FAILED", body.get("message", ""))
        case 409:
            raise AlreadyThere(body.get("message", ""))
    raise ValueError(f"status {answer.status_code}")


def look(request: Request) -> Found | NotFound:
    """Ask what was charged under the effect's key."""
    answer = PROVIDER.get(f"charges?key={quote(request.key, safe='')}")
    body = answer.json()
    if answer.status_code == httpx.codes.NOT_FOUND and body.get("code") == "not_found":
        return NotFound()
    first = answer.raise_for_status().json()["charges"][0]
    return Found(_record(first), first["id"], payload={name: first[name] for name in FIELDS})


def _record(body: dict[str, Any]) -> dict[str, Any]:
    return {"charge": body["id"], **{name: body[name] for name in FIELDS}}


def main() -> int:
    """Work until SIGTERM; exit code 1 where the server will not have us."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    with Client(os.environ["INTERLOCK_URL"], os.environ["INTERLOCK_TOKEN"]) as client:
        worker = Worker(
            client,
            queues=["documents", "billing"],
            kinds=[Kind("documents.convert", convert), Kind("billing.charge", bill)],
            effects=[Effect("payments.charge", charge, look)],
        )
        print(f"worker {worker.name}", flush=True)
        try:
            worker.serve()
        except Problem as problem:
            print(f"worker: {problem}", file=sys.stderr)
            return 1
    return 0


MEDIA = Path(os.environ.get("MEDIA_ROOT", "var/media"))
PROVIDER = httpx.Client(base_url=os.environ.get("DEMO_PROVIDER_URL", ""), timeout=5, trust_env=False)

if __name__ == "__main__":
    sys.exit(main())
