"""`manage.py drain`: may this be stopped? SAFE, WAIT or BLOCKED, with the rows that say so."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from jobs.management import numbers, shell
from jobs.models import Job
from jobs.operations import cluster, drain, printed
from jobs.operations.drain import Checklist, Part, Verdict
from jobs.outcomes import Refused
from jobs.worker.duties import Duties

EXITS = {Verdict.SAFE: 0, Verdict.WAIT: 1, Verdict.BLOCKED: 2}
REFUSED = 3
"""Not 1: a script that waits at 1 would wait for ever."""


class Command(shell.OperatorCommand):
    """Tells the drain's verdict; with --wait, waits for a better one and recovers meanwhile."""

    refused = REFUSED
    codes = {}

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Say whether the cluster may be stopped. Exit codes: 0 SAFE, 1 WAIT (also when the time is up), "
            "2 BLOCKED (a person must act: waiting does not help) or bad usage, 3 refused, 4 the database "
            "cannot be used."
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        shell.look_arguments(parser)
        shell.act_arguments(parser, required=False)
        parser.add_argument(
            "--close-claims", action="store_true", help=_("close claims first (--as, --reason)")
        )
        parser.add_argument(
            "--wait",
            action="store_true",
            help=_("look again until it is SAFE or only a person can help, taking back what ran out"),
        )
        parser.add_argument(
            "--timeout",
            type=numbers.seconds,
            default=600.0,
            metavar=_("SECONDS"),
            help=_("at most so long (600)"),
        )

        parser.add_argument(
            "--workers-version",
            type=shell.text,
            default="",
            metavar=_("VERSION"),
            help=_("the version that all workers should be of (without it, that of the one started last)"),
        )

    def act(self, options: dict[str, Any]) -> None:
        using = options["database"]
        if options["close_claims"]:
            if not options["person"]:
                self.end(REFUSED, "PERSON_MISSING", _("Say who you are: --as USER."))
            if not options["reason"]:
                raise Refused("REASON_MISSING")
            cluster.close_claims(actor=self.person(options), reason=options["reason"], using=using)
        version = options["workers_version"]
        if options["wait"]:
            found = self._wait(options["timeout"], using, version)
        else:
            found = drain.look(using, version=version)
        self.tell(found.document(), _told(found))
        if found.verdict is not Verdict.SAFE:
            sys.exit(EXITS[found.verdict])

    def _wait(self, timeout: float, using: str, version: str) -> Checklist:
        duties = Duties(Job.objects.db_manager(using).runtime, worker_id="drain", clock=time.monotonic)
        last = ""

        def seen(found: Checklist) -> None:
            nonlocal last
            line = ", ".join(
                f"{part.name} {_count(part)}" for part in found.parts if part.verdict is not Verdict.SAFE
            )
            if line != last and found.verdict is not Verdict.SAFE:
                last = line
                self.stderr.write(f"{found.verdict}: {line}")

        return drain.wait(
            timeout=timeout,
            recover=lambda: duties.attempt("recover", duties.recover, None),
            sleep=time.sleep,
            seconds=time.monotonic,
            using=using,
            seen=seen,
            version=version,
        )


def _told(found: Checklist) -> Iterator[str]:
    for part in found.parts:
        count = "" if part.name == "claims" else f" {_count(part)}"
        yield f"{part.verdict:<8} {part.name}{count}: {_(part.sentence)}{_besides(found, part)}"
        if part.verdict is Verdict.SAFE:
            continue
        for row in part.rows:
            shown = (
                f"{name}={printed.plain(value)}" for name, value in row.items() if value not in (None, "")
            )
            if line := " ".join(shown):
                yield f"           {line}"
        if part.count > len(part.rows):
            yield "           " + _("and %s more") % (
                f"{part.count - len(part.rows)}+" if part.more else part.count - len(part.rows)
            )
    yield found.verdict


def _besides(found: Checklist, part: Part) -> str:
    """Return what a part is said with: why claims are closed, what most workers run."""
    if part.name == "claims" and not found.claims_open:
        row = part.rows[0]
        said = _("By %(by)s: %(reason)s") % {"by": row["changed_by"], "reason": row["reason"]}
        return " " + printed.plain(said) if row["reason"] else ""
    if part.name == "versions" and found.versions.all:
        said = _("%(n)s of %(all)s are %(version)s.") % {
            "n": found.versions.right,
            "all": found.versions.all,
            "version": found.versions.wanted,
        }
        return " " + printed.plain(said)
    return ""


def _count(part: Part) -> str:
    return f"{part.count}+" if part.more else str(part.count)
