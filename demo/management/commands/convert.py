"""`manage.py convert PATH…`: your own files through the queue."""

from __future__ import annotations

import os
import time
import uuid
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from demo import store
from demo.convert import TARGETS
from demo.kinds import convert
from jobs.management import numbers, shell
from jobs.models import Attempt, Job
from jobs.status import TERMINAL, JobStatus

POLL = 0.3


class Command(BaseCommand):
    requires_system_checks = []  # those of Django 6.1 open the database

    help = (
        "Enqueue files for conversion and follow them to their end. Markdown, reStructuredText, CSV, "
        "HTML and text become html, text or json. A worker has to run (`make run`, `make demo`, or manage.py "
        "runworker --queues documents). Exit code 0: all converted; 1: some were not; 2: wrong use."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", type=Path, help="a file to convert")
        parser.add_argument("--to", choices=sorted(TARGETS), default="html", help="what to make of it (html)")
        parser.add_argument("--out", type=Path, metavar="FOLDER", help="copy the results into this folder")
        parser.add_argument("--no-wait", action="store_true", help="enqueue and print the job ids, no more")
        parser.add_argument(
            "--timeout",
            type=numbers.seconds,
            default=600.0,
            metavar="SECONDS",
            help="stop following after so long (600)",
        )

    def handle(self, **options: Any) -> None:
        with shell.needs_database():
            self._convert(**options)

    def _convert(self, *, paths: list[Path], to: str, out: Path | None, **options: Any) -> None:
        jobs: dict[uuid.UUID, str] = {}
        unreadable = 0
        if out is not None:
            try:
                out.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CommandError(f"--out {_shown(out)}: {error.strerror}") from None
        for path in paths:
            shown = _shown(path)
            try:
                source = store.keep_source(path)
            except OSError as error:
                unreadable += 1
                self.stderr.write(_("%(path)s: %(why)s") % {"path": shown, "why": error.strerror or error})
                continue
            jobs[convert.enqueue(source=source, to=to, name=_shown(path.name)).job_id] = shown
        if options["no_wait"]:
            for job_id, shown in jobs.items():
                self.stdout.write(f"{job_id}  {shown}")
        else:
            unreadable += self._follow(jobs, out, options["timeout"])
        if unreadable:
            raise CommandError(
                _("%(count)s of %(all)s files were not converted.") % {"count": unreadable, "all": len(paths)}
            )

    def _follow(self, jobs: dict[uuid.UUID, str], out: Path | None, timeout: float) -> int:
        """Print what becomes of each job; returns how many did not succeed."""
        ends = time.monotonic() + timeout
        left, failed, shown = set(jobs), 0, ""
        while left:
            for job in Job.objects.filter(pk__in=left, status__in=sorted(TERMINAL | {JobStatus.UNCERTAIN})):
                left.discard(job.pk)
                self._clear(shown)
                shown = ""
                failed += not self._report(job, jobs[job.pk], out)
            if not left:
                break
            if time.monotonic() > ends:
                self._clear(shown)
                text = ngettext(
                    "Gave up waiting for %(count)s job; it goes on.",
                    "Gave up waiting for %(count)s jobs; they go on.",
                    len(left),
                )
                self.stderr.write(text % {"count": len(left)})
                return failed + len(left)
            shown = self._progress(left, len(jobs), shown)
            time.sleep(POLL)
        return failed

    def _report(self, job: Job, path: str, out: Path | None) -> bool:
        if job.status != JobStatus.SUCCEEDED:
            why = job.error_message or job.error_code or job.status
            self.stderr.write(f"{path}: {job.status}, {job.error_code} {why}".rstrip())
            return False
        result = Attempt.objects.get(job=job, status="committed").value
        where = result["file"]
        if out is not None:
            target = out / Path(where).name
            try:
                with default_storage.open(where) as stored:
                    target.write_bytes(stored.read())
            except OSError as error:
                self.stderr.write(_("%(path)s: %(why)s") % {"path": _shown(target), "why": error.strerror})
                return False
            where = _shown(target)
        elif hasattr(default_storage, "path"):
            where = default_storage.path(where)
        self.stdout.write(f"{path}: {where} ({result['seconds']} s, {result['target_bytes']} bytes)")
        return True

    def _progress(self, left: set[uuid.UUID], total: int, shown: str) -> str:
        """One live line on a terminal: how many are done, and how far the running ones are."""
        if not self.stdout.isatty():
            return ""
        running = Attempt.objects.filter(job_id__in=left, status="running").values_list(
            "progress_done", "progress_total"
        )
        parts = [f"{done * 100 // total_}%" for done, total_ in running if done and total_]
        line = _("%(done)s of %(all)s done") % {"done": total - len(left), "all": total}
        line += f", {', '.join(parts)}" if parts else ""
        self._clear(shown)
        self.stdout.write(line, ending="")
        self.stdout.flush()
        return line

    def _clear(self, shown: str) -> None:
        if shown:
            self.stdout.write("\r" + " " * len(shown) + "\r", ending="")


def _shown(path: Path | str) -> str:
    """Return a path as text: a file's name may be any bytes, and neither a job nor a terminal takes those."""
    return os.fsencode(path).decode("utf-8", "replace")
