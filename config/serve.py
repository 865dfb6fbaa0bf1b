"""Runs the whole product in one terminal, web server and worker, until Ctrl-C or SIGTERM.

With --demo also the demonstration's payment service, unless DEMO_PROVIDER_URL names another.

    python -m config.serve [--demo]

What `make run` and `make demo` call. On a server of your own let its init system run `gunicorn` and
`manage.py runworker`, each by itself.
"""

import argparse
import ctypes
import errno
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from config import settings
from config.env import ROOT

WORKER = [sys.executable, "manage.py", "runworker"]
PROVIDER_LEDGER = "var/provider.sqlite3"
PR_SET_PDEATHSIG = 1
NEIGHBOURS = 50
# Longer than the worker's own grace, so that it is the worker that decides what becomes of its jobs.
PATIENCE_SECONDS = 60
QUICK_SECONDS = 5.0
"""A worker that ends sooner than this after its start cannot work here; a later one was fenced or killed."""
_LIBC = ctypes.CDLL(None, use_errno=True)


class NoPort(Exception):
    """No port to listen on."""


class Asked(Exception):
    """We were asked to stop before all was started."""


@dataclass(frozen=True)
class Child:
    """A program that we started and must not leave behind."""

    name: str
    process: "subprocess.Popen[bytes]"
    ended: int  # a descriptor that becomes readable when it has ended
    started: float = field(default_factory=time.monotonic)

    def lived(self) -> float:
        """Return for how many seconds it has run by now."""
        return time.monotonic() - self.started

    def reap(self) -> int:
        """Let go of it once it has ended; returns its exit code."""
        os.close(self.ended)
        return self.process.wait()


def main(arguments: Sequence[str]) -> int:
    """Prepare, start both programs, wait, stop both; return the exit code."""
    parser = argparse.ArgumentParser(prog="config.serve", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--demo", action="store_true", help="seed the demonstration, with a payment service")
    options = parser.parse_args(arguments)
    # Before anything is started: a signal in between would leave what we started behind.
    asked = _signals()
    beside: list[Child] = []
    try:
        if options.demo and not settings.DEMO_PROVIDER_URL:
            beside.append(start_provider(asked))
        if not run_to_end(asked, "set-up", "config.prepare", *(["--demo"] if options.demo else [])):
            return 0
        with listen(settings.WEB_HOST, settings.WEB_PORT) as listener:
            return serve(asked, listener, beside)
    except (NoPort, subprocess.CalledProcessError) as error:
        # A failed set-up has said its own sentence, and so has a payment service.
        if isinstance(error, NoPort):
            print(f"serve: {error}", file=sys.stderr)
        return 1
    except Asked:
        return 0
    finally:
        stop(asked, beside)


def run_to_end(asked: int, name: str, module: str, *arguments: str) -> bool:
    """Run one of our modules; return False when we were asked to stop before it ended."""
    child = start(name, [sys.executable, "-m", module, *arguments])
    ended = wait(asked, [child])
    stop(asked, [child])
    if ended and child.process.returncode:
        raise subprocess.CalledProcessError(child.process.returncode, name)
    return ended is not None


def start_provider(asked: int) -> Child:
    """Start the payment service and tell whoever is started after it, by the environment, where it is.

    Its ledger stays: it remembers what was charged as long as the database remembers having charged.
    """
    ledger = ROOT / PROVIDER_LEDGER
    ledger.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "demo.provider", "--ledger", str(ledger)]
    child = start("payment service", command, output=subprocess.PIPE)
    assert child.process.stdout is not None  # noqa: S101  (it was just asked for)
    readable, _, _ = select.select([asked, child.process.stdout.fileno()], [], [])
    said = child.process.stdout.readline().decode() if asked not in readable else ""
    if not said.startswith("provider: http"):
        stop(asked, [child])
        if asked in readable:
            raise Asked
        raise subprocess.CalledProcessError(child.process.returncode, child.name)
    os.environ["DEMO_PROVIDER_URL"] = said.split()[1]
    print(f"serve: the payment service is {said.split()[1]}", flush=True)
    return child


def serve(asked: int, listener: socket.socket, beside: Sequence[Child] = ()) -> int:
    """Run web server and worker on this socket until a signal comes or one of them, or of `beside`, ends.

    In place of a worker that was fenced or killed another is started, as an init system would.
    """
    host, port = settings.WEB_HOST, listener.getsockname()[1]
    if port != settings.WEB_PORT:
        print(f"serve: port {settings.WEB_PORT} is taken, so the next free one is used")
    gunicorn = ["-m", "gunicorn", "--config", "python:config.web", "--bind", f"fd://{listener.fileno()}"]
    children: list[Child] = []
    try:
        web = [sys.executable, *gunicorn, "config.wsgi:application"]
        children.append(start("web server", web, listener.fileno()))
        children.append(start("worker", WORKER))
        shown = {"0.0.0.0": "localhost", "::": "localhost", "127.0.0.1": "localhost"}.get(host, host)  # noqa: S104
        print(f"serve: http://{shown}:{port}/ (Ctrl-C stops everything)", flush=True)
        while (ended := wait(asked, [*children, *beside])) is children[-1] and ended.lived() > QUICK_SECONDS:
            code = ended.reap()
            print(f"serve: the worker ended by itself (code {code}); another one is started", flush=True)
            children[-1] = start("worker", WORKER)
    finally:
        stop(asked, children)
    if ended:
        if ended in beside:
            ended.process.wait()
        code = ended.process.returncode
        print(
            f"serve: the {ended.name} ended by itself (code {code}), so the rest was stopped", file=sys.stderr
        )
        return 1
    print("serve: stopped")
    return 0


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the port or, when it is taken, on the next free one.

    The web server is given the socket itself: a number that was free a moment ago may be taken by now.
    """
    for candidate in range(port, min(port + NEIGHBOURS, 65_535) + 1):
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        # What the kernel remembers of our last run is no obstacle.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(512)
        except OSError as error:
            listener.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise NoPort(f"WEB_HOST names {host}, which cannot be listened on ({error}).") from error
        else:
            return listener
    raise NoPort(f"port {port} and the {NEIGHBOURS} after it are taken; set WEB_PORT to another.")


def start(name: str, command: Sequence[str], *descriptors: int, output: int | None = None) -> Child:
    """Start a program that ends when we do, however we end."""
    parent = os.getpid()

    def tie() -> None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | _log_format(),
        pass_fds=descriptors,
        stdout=output,
        preexec_fn=tie,
        # A group of its own: Ctrl-C is for us, and we pass it on.
        process_group=0,
    )
    return Child(name, process, os.pidfd_open(process.pid))


def wait(asked: int, children: Sequence[Child]) -> Child | None:
    """Return the child that ended by itself, or None when a signal asked us to stop."""
    readable, _, _ = select.select([asked, *(child.ended for child in children)], [], [])
    return next((child for child in children if child.ended in readable), None)


def stop(asked: int, children: Sequence[Child]) -> None:
    """End the children: asked once, hastened by each further signal, killed when our patience ends."""
    running = {child.ended: child for child in children}
    _heard(asked)
    for child in children:
        child.process.terminate()
    while running:
        readable, _, _ = select.select([asked, *running], [], [], PATIENCE_SECONDS)
        for child in running.values():
            if not readable:
                child.process.kill()
            elif asked in readable:
                child.process.terminate()
        _heard(asked)
        for ended in running.keys() & set(readable):
            running.pop(ended).reap()


def _signals() -> int:
    """Return a descriptor that becomes readable when we are asked to stop, and hear nothing else of it."""
    asked, write = os.pipe()
    os.set_blocking(asked, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return asked


def _heard(asked: int) -> None:
    try:
        os.read(asked, 1024)
    except BlockingIOError:
        return


def _log_format() -> dict[str, str]:
    """Return text for a person at a terminal, unless something else was asked for."""
    return {"LOG_FORMAT": "plain"} if sys.stderr.isatty() and "LOG_FORMAT" not in settings.env.values else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
