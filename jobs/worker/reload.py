"""Restarting a worker when its code changes, in development: an orderly stop, then a new process."""

from __future__ import annotations

import logging
import threading

from django.utils import autoreload

from jobs.worker.stop import RELOAD, Stop

log = logging.getLogger("interlock.worker")


def watch(stop: Stop) -> None:
    """Ask for a stop with the code for "start me again" once a file of ours has changed."""
    threading.Thread(target=_watch, args=(stop,), name="autoreload", daemon=True).start()


def _watch(stop: Stop) -> None:
    try:
        autoreload.get_reloader().run(threading.main_thread())
    except SystemExit:  # how Django says that a file has changed
        stop.ask("a file has changed", code=RELOAD)
