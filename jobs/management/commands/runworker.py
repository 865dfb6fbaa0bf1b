"""Runs a worker: claims jobs, runs their handlers, commits their results, until told to stop."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from jobs import failpoints
from jobs.handlers import QUEUE
from jobs.management import numbers
from jobs.worker import processes
from jobs.worker.start import Unfit
from jobs.worker.stop import LEFT_RUNNING
from jobs.worker.threads import ThreadedWorker

SWITCH_SECONDS = 0.0005
"""How long a thread may keep the others from the interpreter, instead of Python's own 5 ms: claiming and
committing need it for moments between round trips, and waited that long while a handler computed."""


class Command(BaseCommand):
    """Exit codes: 0 clean, 1 error or fenced, 2 wrong options, 75 jobs given back while their code ran."""

    # The checks of addresses would import the console, which a worker has no use for and pays memory for.
    requires_system_checks: list[str] = []

    @property
    def help(self) -> str:  # type: ignore[override]
        return _("Claim jobs, run their handlers and commit their results (docs/workers.md).")

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--queues", type=_queues, help=_("serve these, comma-separated (default: those of the kinds)"))
        add("--kinds", type=_words, help=_("run these, comma-separated (default: all that are known)"))
        add(
            "--concurrency",
            type=numbers.whole(1, 10_000),
            default=8,
            help=_("jobs at a time, plain and async each (default 8)"),
        )
        add(
            "--processes",
            type=numbers.whole(1, 10_000),
            default=1,
            help=_("worker processes under one parent (default 1)"),
        )
        add(
            "--grace",
            type=numbers.seconds,
            default=30.0,
            help=_("seconds running jobs get after SIGTERM (default 30)"),
        )
        add("--once", action="store_true", help=_("make one claim, run it, then stop"))
        add("--drain", action="store_true", help=_("stop when nothing is ready or running"))
        add("--autoreload", action="store_true", help=_("start anew when the code changes (development)"))
        add("--child-of", type=int, help=_("for the parent's own use: its process id"))

    def handle(self, **options: Any) -> NoReturn:
        if not options["child_of"] and (options["processes"] > 1 or options["autoreload"]):
            sys.exit(self._supervise(options))
        try:
            failpoints.arm(settings.FAILPOINTS)
            worker = ThreadedWorker(
                queues=options["queues"],
                kinds=options["kinds"],
                concurrency=options["concurrency"],
                grace=options["grace"],
                once=options["once"],
                drain=options["drain"],
                live=not options["child_of"],
            )
        except (Unfit, ValueError) as reason:
            raise CommandError(str(reason)) from None
        worker.stop.listen()
        if options["child_of"] and not processes.tie_to(options["child_of"]):
            worker.stop.ask("the parent is gone")
        if options["autoreload"]:
            from jobs.worker import reload

            reload.watch(worker.stop)
        sys.setswitchinterval(SWITCH_SECONDS)
        code = worker.run()
        if code == LEFT_RUNNING or not worker.is_idle:
            os._exit(
                code
            )  # the interpreter's own way out would wait for, or crash under, code that still runs
        sys.exit(code)

    @staticmethod
    def _supervise(options: dict[str, Any]) -> int:
        from django.utils.autoreload import get_child_arguments

        supervisor = processes.Supervisor(
            get_child_arguments(),
            options["processes"],
            grace=options["grace"],
            finite=options["once"] or options["drain"],
        )
        supervisor.stop.listen()
        return supervisor.run()


def _words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise ArgumentTypeError(_("names, separated by commas"))
    return words


def _queues(text: str) -> list[str]:
    queues = _words(text)
    for queue in queues:
        if not QUEUE.fullmatch(queue):
            raise ArgumentTypeError(_("“%s” is no name of a queue") % queue)
    return queues
