"""Knows what a machine may lack: finds it, and skips by name the tests that need it.

A test says `@pytest.mark.browser` or `@pytest.mark.pgbouncer`. What is skipped is counted on the last line of
`make test`, and `--require browser,pgbouncer` (what continuous integration asks for) turns it into a failure.
"""

import os
import shutil
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

import pytest

from config import garbage


def browser() -> str | None:
    """Return the path of a Chromium that can be driven."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return os.environ.get("BROWSER") or next(filter(None, map(shutil.which, names)), None)


def pgbouncer() -> str | None:
    """Return the path of the pgbouncer program, which Debian keeps out of an ordinary user's PATH."""
    return shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")


PROVIDERS: dict[str, Callable[[], str | None]] = {"browser": browser, "pgbouncer": pgbouncer}
REASON = "this machine has no "
PARTS = ("plain", "pages", "walks", "races", "processes", "browser")
"""What drives a browser or whole processes is in the folder of that name; the others are plain, but for those
of console and API, and those that try one thing in thousands of ways or try the demonstration. Coverage
would double the time of these."""
FOLDERS = {
    **dict.fromkeys(("console", "api"), "pages"),
    **dict.fromkeys(("matrix", "demo", "bench_guards"), "walks"),
    "fuzz": "processes",
}
TESTS = Path(__file__).parent


def parts_of(text: str) -> tuple[str, ...]:
    """Return the parts that `text` names, in their order; ArgumentTypeError for what is none."""
    named = set(text.split(","))
    if strange := named - {"all", *PARTS}:
        raise ArgumentTypeError(f"{', '.join(sorted(strange))}: a part is all or one of {', '.join(PARTS)}")
    return PARTS if "all" in named else tuple(part for part in PARTS if part in named)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        type=parts_of,
        default="all",
        help="run all tests, or some parts, comma-separated: see PARTS in tests/needs.py",
    )
    parser.addoption(
        "--asking",
        choices=["anything", "the-database"],
        default="anything",
        help="run all tests, or only those that ask the database: the others answer alike on every one",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what cannot run here, and leave to the other process what belongs there."""
    missing = [name for name, find in PROVIDERS.items() if find() is None]
    for item in items:
        for name in missing:
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=REASON + name))
    if config.getoption("--asking") == "the-database":
        alike = [item for item in items if not asks_database(item)]
        config.hook.pytest_deselected(items=alike)
        items[:] = [item for item in items if item not in set(alike)]


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and never among what was collected: it is a tenth of the tests' time."""
    garbage.settle()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folders of the other parts unread: reading all the tests takes longer than many of them."""
    parts = config.getoption("--part")
    if parts == PARTS or not collection_path.is_relative_to(TESTS) or collection_path == TESTS:
        return None
    folder = collection_path.relative_to(TESTS).parts[0]
    belongs = folder if folder in PARTS else FOLDERS.get(folder, "plain")
    return None if belongs in parts else True


def asks_database(item: pytest.Item) -> bool:
    """Return whether a test may use the product's database, by its marks and fixtures or theirs."""
    if item.get_closest_marker("looks_alike"):
        return False
    fixtures = set(getattr(item, "fixturenames", ()))
    return bool(
        item.get_closest_marker("django_db") or fixtures & {"db", "transactional_db", "django_db_setup"}
    )


@pytest.fixture(autouse=True)
def _browser_and_database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests that drive a browser use the ORM.

    Playwright keeps an event loop on the test's own thread, which Django takes for an async caller.
    """
    if request.node.get_closest_marker("browser"):
        monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")


@pytest.fixture(scope="session", autouse=True)
def _quick_passwords() -> None:
    """Hash passwords fast: a safe hash costs each log-in a tenth of a second."""
    from django.conf import settings

    quick = "django.contrib.auth.hashers.MD5PasswordHasher"
    if quick not in settings.PASSWORD_HASHERS:
        settings.PASSWORD_HASHERS = [quick, *settings.PASSWORD_HASHERS]


@pytest.fixture(scope="session", autouse=True)
def _quick_clients() -> None:
    """Look for a static file when it is asked for: reading all of them costs each new client 20 ms."""
    from django.conf import settings

    settings.WHITENOISE_AUTOREFRESH = True


@pytest.fixture(scope="session")
def browser_path() -> str:
    """The browser to hand to Playwright as `executable_path`."""
    path = browser()
    assert path, "a test that uses this fixture carries @pytest.mark.browser"
    return path
