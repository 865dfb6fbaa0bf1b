"""What the operators' commands share: who types, why, one document or lines, and how each of them ends."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, ClassVar, NoReturn

from django.core.management.base import BaseCommand, CommandError
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    DataError,
    IntegrityError,
    InternalError,
    NotSupportedError,
    connections,
)
from django.utils.translation import gettext as _

from jobs import audit
from jobs.management import numbers
from jobs.models.audit import Source
from jobs.operations import door, lookup, printed
from jobs.operations.cluster import HIGHEST_FLOOR
from jobs.outcomes import InvalidJob, Refused
from jobs.verbs.base import is_blank

REFUSED, USAGE, HELD, NO_DATABASE = 1, 2, 3, 4
NOT_FOUND = 3
_CODES = {"SCHEDULER_HELD": HELD, "REASON_MISSING": USAGE, "REASON_TOO_LONG": USAGE}


class OperatorCommand(BaseCommand):
    """Runs `act`; a refusal or an absent database becomes a sentence and an exit code, never a traceback."""

    requires_system_checks = []
    codes: ClassVar[dict[str, int]] = _CODES
    refused = REFUSED
    missing = "NOT_FOUND"
    """The refusal of an id that nothing has."""

    def act(self, options: dict[str, Any]) -> None:
        """Do what was asked."""
        raise NotImplementedError

    def handle(self, *_args: Any, **options: Any) -> None:
        self.json: bool = options["json"]
        try:
            with audit.through(Source.COMMAND, user=options.get("person") or "", account=door.account()):
                self.act(options)
        except Refused as refused:
            self.end(self.codes.get(refused.code, self.refused), refused.code, str(refused), **refused.params)
        except lookup.BadId as error:
            text = _("%(id)s is no id: at least %(least)s of its hexadecimal digits are needed.")
            self.end(USAGE, "BAD_ID", text % {"id": str(error), "least": lookup.LEAST})
        except lookup.Ambiguous as error:
            ids = ", ".join(str(found) for found in error.ids)
            self.end(USAGE, "AMBIGUOUS_ID", _("Several ids begin like this, among them %s.") % ids)
        except lookup.NotFound as error:
            absent = Refused(
                self.missing, **dict.fromkeys(("job_id", "case_id", "proposal_id"), str(error.args[0]))
            )
            self.end(NOT_FOUND, absent.code, str(absent))
        except InvalidJob as invalid:
            self.end(USAGE, "BAD_VALUE", str(invalid), field=invalid.field)
        except DatabaseError as error:
            self.end(NO_DATABASE, "NO_DATABASE", unusable(error))

    def person(self, options: dict[str, Any]) -> Any:
        """Return the user who types; a reason of blanks is refused before anything is looked at."""
        if is_blank(options["reason"]):
            raise Refused("REASON_MISSING")
        return door.at_shell(options["person"])

    def tell(self, document: dict[str, Any], lines: Iterable[str]) -> None:
        """Print the document or the lines."""
        for line in [printed.as_json(document)] if self.json else lines:
            self.stdout.write(line)

    def end(self, status: int, code: str, text: str, /, **params: Any) -> NoReturn:
        """Say why it ended, and exit."""
        if self.json:
            self.stdout.write(printed.as_json({"error": {"code": code, "params": params, "text": text}}))
        else:
            self.stderr.write(printed.plain(text))
        sys.exit(status)

    def confirm(self, words: str) -> None:
        """Have `words` typed; raises Refused NOT_CONFIRMED when something else is, or nobody is there to."""
        self.stderr.write(_("Type “%s” to go on: ") % words, ending="")
        if sys.stdin.readline().strip() != words:
            raise Refused("NOT_CONFIRMED", words=words)


def unusable(error: DatabaseError) -> str:
    """Say why the database cannot be used; raises `error` again where it can, and a statement was wrong."""
    if isinstance(error, (DataError, IntegrityError, InternalError, NotSupportedError)):
        raise error
    # No server, a file that is none, or tables that nobody has migrated.
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return _("The database cannot be used: %s.") % reason


@contextmanager
def needs_database() -> Iterator[None]:
    """End the command with a sentence, and not with a traceback, where the database cannot be used."""
    try:
        yield
    except DatabaseError as error:
        raise CommandError(unusable(error), returncode=NO_DATABASE) from None


def json_argument(parser: ArgumentParser) -> None:
    """Add the choice between lines and a document."""
    parser.add_argument("--json", action="store_true", help=_("print one JSON document"))


def look_arguments(parser: ArgumentParser) -> None:
    """Add what every command on a whole database takes."""
    json_argument(parser)
    database_argument(parser)


def database_argument(parser: ArgumentParser) -> None:
    """Add the choice of a database."""
    parser.add_argument(
        "--database", default=DEFAULT_DB_ALIAS, type=database, help=_("which of the configured databases")
    )


def act_arguments(parser: ArgumentParser, *, required: bool = True) -> None:
    """Add who and why."""
    parser.add_argument(
        "--reason", required=required, type=text, help=_("why, in your own words; it is kept")
    )
    parser.add_argument(
        "--as",
        dest="person",
        required=required,
        type=text,
        metavar=_("USER"),
        help=_("whose permission this uses; kept too"),
    )


def text(given: str) -> str:
    """Check an argument that is kept."""
    try:
        given.encode()
    except UnicodeEncodeError:  # a shell passes any bytes on, as lone surrogates
        raise ArgumentTypeError(_("text in UTF-8 is needed")) from None
    return given


def database(given: str) -> str:
    """Check the name of a database."""
    if given not in connections:
        raise ArgumentTypeError(_("there is no such database, only %s") % ", ".join(connections))
    return given


epoch = numbers.whole(0, HIGHEST_FLOOR)
"""Parses an epoch that can be told in the audit chain, and raised again afterwards."""


def instant(given: str) -> datetime:
    """Parse an instant with its time zone."""
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ArgumentTypeError(_("an instant like 2026-01-31T12:00:00Z is needed"))
    return moment
