"""Runs a worker: claims jobs, runs their handlers, commits their results, until told to stop."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.worker.loop import Unfit
from jobs.worker.threads import ThreadedWorker


class Command(BaseCommand):
    help = "Claim jobs, run their handlers and commit their results."
    requires_system_checks: list[str] = []  # noqa: RUF012  (Django's own name; the URL checks would import the console)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--queues", type=_words, help="queues to serve, comma-separated; default: those of the kinds")
        parser.add_argument("--kinds", type=_words, help="kinds to run, comma-separated; default: all that are known")
        parser.add_argument("--concurrency", type=int, default=8, help="jobs at a time, of each sort (default 8)")
        parser.add_argument("--grace", type=float, default=30.0, help="seconds that running jobs get after SIGTERM")
        parser.add_argument("--once", action="store_true", help="make one claim, then stop")
        parser.add_argument("--drain", action="store_true", help="stop when nothing is ready or running")

    def handle(self, **options: Any) -> None:
        try:
            worker = ThreadedWorker(
                queues=options["queues"],
                kinds=options["kinds"],
                concurrency=options["concurrency"],
                grace=options["grace"],
                once=options["once"],
                drain=options["drain"],
            )
        except Unfit as reason:
            raise CommandError(str(reason)) from None
        worker.stop.listen()
        code = worker.run()
        if worker.slots.running():
            os._exit(code)
        sys.exit(code)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
