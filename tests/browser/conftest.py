"""A real browser on a real server, with a cluster to look at that lasts for one file of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from tests import flush
from tests.browser import data
from tests.browser.data import Built
from tests.console.people import log_in

# Only a test that fails waits so long; a busy machine may need more than the five seconds that are usual.
expect.set_options(timeout=20_000)
PICTURES = Path(__file__).resolve().parents[2] / "var" / "browser"
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(event.violatedDirective + " " + event.blockedURI);
});
"""


@pytest.fixture(scope="session")
def chromium(browser_path: str, django_db_setup: None) -> Iterator[Browser]:
    """The browser, started once, after the database was made: Playwright's loop looks to Django like an async
    caller, and not only while a test runs but also when the database is emptied after it.
    """
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(chromium: Browser) -> Iterator[LiveServer]:
    """The server. Ours and not pytest-django's, which empties the database after each test."""
    running = LiveServer("localhost")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def transactional_db(server: LiveServer, django_db_blocker: Any) -> Iterator[None]:
    """The database, emptied after each file of tests, not each test: a cluster takes seconds to build."""
    with django_db_blocker.unblock():
        yield
        flush.empty("default")


@pytest.fixture(scope="module")
def person(transactional_db: None) -> Any:
    """A viewer with a password."""
    return data.viewer()


@pytest.fixture(scope="module")
def world(person: Any) -> Built:
    """A cluster at work. Tests of one file share it: they add to it and take nothing away."""
    return data.build()


@pytest.fixture
def told() -> list[str]:
    """What the browser's console told of; a test that provokes something takes that out."""
    return []


@pytest.fixture
def window(
    chromium: Browser,
    server: LiveServer,
    person: Any,
    told: list[str],
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., Page]]:
    """Open pages as that person. Afterwards: the policy refused nothing, the console told of no error.

    How each page looked at the end is kept in var/browser.
    """
    contexts: list[BrowserContext] = []

    def tell(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            told.append(message.text)

    def fail(error: Error) -> None:
        told.append(str(error))

    def open_window(
        *,
        scheme: Any = "light",
        width: int = 1440,
        height: int = 900,
        known: bool = True,
        who: Any = None,
        recent: bool = True,
        locale: str = "en-US",
    ) -> Page:
        context = chromium.new_context(
            base_url=server.url,
            color_scheme=scheme,
            viewport={"width": width, "height": height},
            locale=locale,
        )
        contexts.append(context)
        context.add_init_script(WATCH)
        if known:
            client = Client()
            if recent:
                log_in(client, who or person)
            else:
                client.force_login(who or person)
            name = settings.SESSION_COOKIE_NAME
            context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": server.url}])
        page = context.new_page()
        page.on("console", tell)
        page.on("pageerror", fail)
        return page

    yield open_window
    PICTURES.mkdir(parents=True, exist_ok=True)
    for number, context in enumerate(contexts):
        for page in context.pages:
            told += page.evaluate("window.violations || []")
            page.screenshot(path=PICTURES / f"{request.node.name[:80]}-{number}.png")
        context.close()
    assert told == []
