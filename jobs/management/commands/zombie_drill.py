"""`manage.py zombie_drill`: does this installation refuse a worker that has lost its lease? For cron."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from jobs.drills.zombie import drill
from jobs.management.shell import OperatorCommand, look_arguments, text
from jobs.models import Drill
from jobs.models.drill import DrillVerdict
from jobs.operations import actor, door

ACCEPTED, NOT_DONE = 1, 3


class Command(OperatorCommand):
    """Runs the drill and ends with what it shows."""

    refused = NOT_DONE
    """Not 1, which is an alarm."""

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Let a superseded worker try every acceptance point of the fence, on this installation's "
            "database, with canary jobs of its own (kind and queue interlock.drill) that no worker runs. "
            "Takes some seconds; the result is kept and shown in the console. "
            "Exit codes: 0 all was refused, 1 something was accepted (an alarm), "
            "3 it could not be carried out, 4 no database."
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        look_arguments(parser)
        parser.add_argument(
            "--as",
            dest="person",
            type=text,
            metavar=_("USER"),
            help=_("who runs it, if a person does; it is kept"),
        )

    def act(self, options: dict[str, Any]) -> None:
        """Run it."""
        person = options["person"]
        by = actor.signed(door.at_shell(person).get_username()) if person else f"shell: {door.account()}"
        done = drill(by=by, using=options["database"])
        self.tell(_document(done), _lines(done))
        code = {DrillVerdict.PASSED: 0, DrillVerdict.FAILED: ACCEPTED}.get(
            DrillVerdict(done.verdict), NOT_DONE
        )
        if code:
            raise SystemExit(code)


def _document(done: Drill) -> dict[str, Any]:
    return {
        "drill": done.id,
        "verdict": done.verdict,
        "by": done.by,
        "started_at": done.started_at,
        "seconds": done.seconds,
        "tried": done.tried,
        "refused": done.passed,
        **done.observed,
    }


def _lines(done: Drill) -> Iterator[str]:
    for entry in done.observed["tries"]:
        if not entry["refused"]:
            yield _("NOT REFUSED: %(point)s with a token whose %(part)s is not current: %(answer)s") % entry
    if note := done.observed["note"]:
        yield _("It could not be carried out: %s.") % note
    yield _(
        "zombie drill %(id)s: %(passed)s of %(tried)s points refused, in %(seconds).1f s: %(verdict)s"
    ) % {
        "id": done.id,
        "passed": done.passed,
        "tried": done.tried,
        "seconds": done.seconds or 0.0,
        "verdict": done.verdict,
    }
