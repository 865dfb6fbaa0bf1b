"""`manage.py health`: is this installation well, and if not, what is to be done."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils.translation import gettext as _

from jobs.health import Level, examine
from jobs.management import shell


class Command(BaseCommand):
    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Examine database, guards, scheduler, queues, workers and leases. Changes nothing. exit code: "
            "0 all is well; 1 something deserves a look (claims closed, a queue that nobody serves, a "
            "silent worker, leases that nobody takes back, jobs that wait for a decision, a drill that "
            "was not finished); 2 broken (no database, migrations or guards missing, a drill that let a "
            "superseded worker in)."
        )

    # An examination of what is broken must not stop at what is broken.
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help=_("print one JSON object for machines"))
        shell.database_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        found = examine(options["database"])
        worst = max(finding.level for finding in found)
        if options["json"]:
            checks = [{"part": f.part, "level": f.level.word, "text": f.text, **f.facts} for f in found]
            self.stdout.write(json.dumps({"status": worst.word, "checks": checks}, default=str, indent=2))
        else:
            styles = {
                Level.OK: self.style.SUCCESS,
                Level.WARNING: self.style.WARNING,
                Level.BROKEN: self.style.ERROR,
            }
            for finding in found:
                self.stdout.write(
                    f"{styles[finding.level](f'{finding.level.word:<8}')} {finding.part:<11} {finding.text}"
                )
            verdict = {
                Level.OK: _("All is well."),
                Level.WARNING: _("It works, but something deserves a look."),
                Level.BROKEN: _("It is broken."),
            }
            self.stdout.write(verdict[worst])
        if worst:
            sys.exit(int(worst))
