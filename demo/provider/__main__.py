"""Starts the service, says where it listens, and ends it on SIGTERM or Ctrl-C."""

import argparse
import ctypes
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from demo.provider.api import Service
from demo.provider.fault import Fault, from_words
from demo.provider.ledger import Ledger
from demo.provider.message import Refused
from demo.provider.modes import Modes
from demo.provider.server import Server

PR_SET_PDEATHSIG = 1
STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(arguments: Sequence[str]) -> int:
    """Serve until a signal comes; return the exit code."""
    # Held back from here on, for sigwait: a handler could come between any two lines.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
    options = _options(arguments)
    if options.with_parent is not None and not die_with(options.with_parent or os.getppid()):
        return 0
    try:
        ledger = Ledger(options.ledger)
    except sqlite3.Error as error:
        return _complain(f"the ledger {options.ledger} cannot be opened ({error})")
    service = Service(ledger, options.modes, options.allow_reset)
    for fault in options.fault:
        service.faults.add(fault)
    try:
        server = Server(options.host, options.port, service)
    except OSError as error:
        ledger.close()
        return _complain(f"{options.host}:{options.port} cannot be listened on ({error})")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    sys.stdout.write(f"provider: {server.url}\n")
    sys.stdout.flush()
    signal.sigwait(STOP)
    server.shutdown()
    server.server_close()
    # A request that is being held ends unanswered; one that is being written is written.
    ledger.close()
    return 0


def die_with(parent: int) -> bool:
    """End when the thread that started this process ends, however it ends; False if it has already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return os.getppid() == parent


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo.provider", description=__doc__, allow_abbrev=False)
    parser.add_argument("--ledger", type=Path, required=True, metavar="FILE")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, choices=range(65_536), metavar="PORT")
    parser.add_argument(
        "--mode",
        action="append",
        default=[],
        metavar="MODE",
        help="keys=honoured (so by default), keys=ignored, fencing",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        type=_fault,
        metavar="KIND[:NAME=VALUE,...]",
        help="as in drop:invoice=INV-1003",
    )
    parser.add_argument("--allow-reset", action="store_true", help="let POST /reset empty the ledger")
    parser.add_argument(
        "--with-parent",
        type=int,
        nargs="?",
        const=0,
        metavar="PID",
        help="end when the parent ends; with its number, even if it has ended already",
    )
    options = parser.parse_args(arguments)
    try:
        options.modes = Modes.read(options.mode)
    except ValueError as error:
        parser.error(str(error))
    return options


def _fault(words: str) -> Fault:
    try:
        return from_words(words)
    except Refused as refusal:
        raise argparse.ArgumentTypeError(str(refusal)) from None


def _complain(sentence: str) -> int:
    sys.stderr.write(f"provider: {sentence}.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
