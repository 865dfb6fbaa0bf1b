"""Takes the pictures of the documentation: `python -m tests.browser.shots [FOLDER]`.

Builds the cluster of tests/browser/data.py in a throw-away SQLite file, serves it, and photographs it. The
pictures look best where the Liberation fonts are installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 200_000
"""Bytes: a picture that is larger is a fault."""
View = tuple[str, str, str, int, int]
"""Name, address, scheme, width and height of a picture."""


def main(folder: Path) -> int:
    """Write the pictures into `folder`; return 1 where one is too large."""
    with tempfile.TemporaryDirectory(prefix="interlock-shots-") as scratch:
        os.environ.update(
            ENV_FILE="",
            DATABASE_URL=f"sqlite:///{scratch}/shots.sqlite3",
            SECRET_KEY=secrets.token_urlsafe(48),
            AUDIT_KEY=secrets.token_urlsafe(48),
            MEDIA_ROOT=f"{scratch}/media",
            DEMO="1",
            DEBUG="0",
            STATIC_HASHED="0",
            LOG_LEVEL="ERROR",
            DJANGO_SETTINGS_MODULE="config.settings",
            DJANGO_ALLOW_ASYNC_UNSAFE="1",
        )
        import django

        django.setup()
        return _photograph(folder)


def _photograph(folder: Path) -> int:
    from django.core.management import call_command
    from playwright.sync_api import sync_playwright
    from pytest_django.live_server_helper import LiveServer

    from tests import needs
    from tests.browser import data

    call_command("migrate", verbosity=0)
    world = data.build()
    cookie = _log_in()
    server = LiveServer("localhost")
    too_large = []
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=needs.browser(), args=["--no-sandbox"])
            for name, path, scheme, width, height in _all(world):
                picture = _take(browser, server.url, cookie, path, scheme, width, height)
                (folder / f"{name}.png").write_bytes(picture)
                print(f"shots: {name}.png, {len(picture) // 1000} kB")
                if len(picture) > LIMIT:
                    too_large.append(name)
            browser.close()
    finally:
        server.stop()
    if too_large:
        print(f"shots: larger than {LIMIT // 1000} kB: {', '.join(too_large)}")
    return 1 if too_large else 0


def _all(world: Any) -> Iterator[View]:
    """Yield the pictures; before the last ones the afternoon turns bad."""
    yield from _jobs(world)
    _cases()
    yield from _people()


def _jobs(world: Any) -> list[View]:
    job = f"/jobs/{world.jobs['uncertain']}/"
    return [
        ("jobs-light", "/jobs/", "light", 1440, 1180),
        ("job-light", job, "light", 1440, 1500),
        ("job-dark", job, "dark", 1440, 1500),
        ("jobs-phone", "/jobs/", "light", 390, 844),
        ("force-cancel-light", f"/jobs/{world.jobs['running']}/force-cancel/", "light", 1440, 640),
    ]


def _people() -> list[View]:
    return [
        ("overview-light", "/", "light", 1440, 1180),
        ("epoch-light", "/scheduler/raise/", "light", 1440, 1180),
        ("inbox-light", "/cases/", "light", 1440, 900),
        ("case-light", f"/cases/{_case()}/", "light", 1440, 1500),
        ("drain-light", "/scheduler/drain/", "light", 1440, 1100),
        ("audit-light", "/audit/", "light", 1440, 900),
    ]


def _cases() -> None:
    """Open cases as a bad afternoon has them."""
    from datetime import timedelta

    from django.db import connection

    from jobs.ledger.clock import clock
    from tests import build
    from tests.console import matters

    def case(minutes: float, *words: str, label: str, amount: str, **columns: Any) -> None:
        invoice, _, target = label.partition(" to ")
        payload = {"invoice": invoice, "to": target, "amount": amount, "currency": "EUR"}
        text = json.dumps(payload | {"card": {"number": "4111"}})
        digest = hashlib.sha256(text.encode()).hexdigest()
        columns |= {"target": target, "payload": text, "payload_digest": digest}
        opened = clock() - timedelta(minutes=minutes)
        matters.open_case(*words, label=label, amount=amount, opened=opened, **columns)

    case(6, "contradiction", label="INV-4471 to northwind", amount="310.00", status="committed", sla=1800)
    case(131, label="INV-4402 to baltic-lines", amount="12400.00", sla=3600)
    for n in range(7):
        case(25 - n, label=f"INV-45{n:02} to cobalt-works", amount=f"{4200 - 310 * n}.00", sla=3600)
    case(48, label="INV-4440 to juniper", amount="16400.00", sla=7200)
    case(18, "conflict", label="INV-4460 to orchard", amount="42.00", sla=3600)
    case(9, "approval", label="INV-4475 to hazel", amount="980.00", status="prepared", grants=0, sla=14400)
    with build.unguarded(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_job SET kind = 'invoices.settle', queue = 'payments',"
            " label = (SELECT c.label FROM jobs_case c WHERE c.job_id = jobs_job.id)"
            " WHERE kind = 'tests.kind'"
        )
        cursor.execute("UPDATE jobs_effectslot SET kind = 'payments.charge' WHERE kind = 'tests.effect'")
        cursor.execute(
            "UPDATE jobs_case SET effect_kind = 'payments.charge' WHERE effect_kind = 'tests.effect'"
        )


def _case() -> Any:
    """Return the case of which most is at stake."""
    from jobs.models import Case

    return Case.objects.get(label="INV-4440 to juniper").pk


def _log_in() -> dict[str, str]:
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group
    from django.test import Client

    from tests.console.people import log_in

    user = get_user_model().objects.create_user("operator-3", is_staff=True)
    user.groups.set([Group.objects.get(name="admin")])
    client = Client()
    log_in(client, user)
    name = settings.SESSION_COOKIE_NAME
    return {"name": name, "value": client.cookies[name].value}


def _take(
    browser: Any, base: str, cookie: dict[str, str], path: str, scheme: str, width: int, height: int
) -> bytes:
    from tests.browser import png

    # A phone's screen is fine: at one dot for one pixel its letters would look worn.
    scale = 2 if width < 600 else 1
    context = browser.new_context(
        base_url=base,
        color_scheme=scheme,
        viewport={"width": width, "height": height},
        device_scale_factor=scale,
        timezone_id="UTC",
    )
    context.add_cookies([cookie | {"url": base}])
    page = context.new_page()
    page.goto(path)
    page.wait_for_load_state("networkidle")
    picture: bytes = page.screenshot()
    context.close()
    return png.shrink(picture)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "docs" / "screenshots"))
