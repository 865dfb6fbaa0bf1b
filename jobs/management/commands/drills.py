"""`manage.py drills`: the golden traces, run by the real code on a throw-away database."""

from __future__ import annotations

import json
import signal
import sys
from argparse import ArgumentParser
from types import FrameType
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError
from django.utils.translation import gettext as _

from jobs.drills import database, scenarios
from jobs.drills.record import Record
from jobs.drills.run import replay
from jobs.drills.sheet import sheet
from jobs.drills.step import Scenario
from jobs.drills.table import table

DEVIATION, CANNOT_RUN = 1, 2


class Command(BaseCommand):
    """Replays each scenario, prints what was observed, and exits with 1 when a value is not as expected."""

    # A drill looks at neither the product's pages nor its tables.
    requires_system_checks = []

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Replay the golden traces through the real runtime on a throw-away database: a temporary SQLite "
            "file, or a temporary schema on your PostgreSQL server. Times are given, nothing is waited for; "
            "the product's tables are not touched and nothing is left behind. "
            "Exit codes: 0 all as expected, 1 a deviation, 2 the drill could not run."
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--scenario",
            action="append",
            metavar="NAME",
            help=_("run only this one; may be given several times"),
        )
        parser.add_argument(
            "--database",
            choices=database.CHOICES,
            default="current",
            help=_("where to drill; `current`, the default, is what DATABASE_URL names"),
        )
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--json", action="store_true", help=_("print the golden file's structure, as observed")
        )
        what.add_argument("--sheet", action="store_true", help=_("print the recovery sheet and run nothing"))
        what.add_argument("--list", action="store_true", help=_("list the scenarios and run nothing"))

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["sheet"]:
            self.stdout.write(sheet())
        elif options["list"]:
            self._list()
        else:
            records, place = _run(_choose(options["scenario"]), options["database"])
            if options["json"]:
                self._print_json(records)
            else:
                self._print_tables(records, place)
            deviations = [str(deviation) for record in records for deviation in record.deviations()]
            for line in deviations:
                self.stderr.write(line)
            if deviations:
                sys.exit(DEVIATION)

    def _list(self) -> None:
        for scenario in scenarios.SCENARIOS:
            self.stdout.write(f"{scenario.name:<36} {_(scenario.title)}")

    def _print_json(self, records: list[Record]) -> None:
        shown = {
            "vocabulary": "job-state",
            "lease_seconds": scenarios.LEASE_SECONDS,
            "ok": all(record.ok for record in records),
            "scenarios": [record.as_json() for record in records],
        }
        self.stdout.write(json.dumps(shown, indent=1, ensure_ascii=False))

    def _print_tables(self, records: list[Record], place: str) -> None:
        for record in records:
            for line in table(record):
                self.stdout.write(line)
            self.stdout.write("")
        good = sum(record.ok for record in records)
        self.stdout.write(
            _("%(good)s of %(all)s scenarios as expected, on %(place)s, removed again")
            % {"good": good, "all": len(records), "place": place}
        )


def _choose(names: list[str] | None) -> list[Scenario]:
    """Return what to run, in the order of the list."""
    wanted = names or [scenario.name for scenario in scenarios.SCENARIOS]
    for name in wanted:
        if scenarios.find(name) is None:
            raise CommandError(
                _("There is no scenario %(name)s; --list names them.") % {"name": name}, returncode=CANNOT_RUN
            )
    return [scenario for scenario in scenarios.SCENARIOS if scenario.name in wanted]


def _run(chosen: list[Scenario], choice: str) -> tuple[list[Record], str]:
    # The default action of SIGTERM would leave the database behind.
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        return replay(chosen, choice)
    except database.CannotDrill as error:
        raise CommandError(str(error), returncode=CANNOT_RUN) from error
    except OperationalError as error:
        reason = str(error).strip().splitlines()[0]
        raise CommandError(
            _("The database cannot be used: %(reason)s.") % {"reason": reason}, returncode=CANNOT_RUN
        ) from error
    except KeyboardInterrupt:
        _stop(signal.SIGINT)
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(number: int, _frame: FrameType | None = None) -> NoReturn:
    sys.exit(128 + number)
