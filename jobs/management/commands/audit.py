"""`manage.py audit`: what people did, whether the record of it is whole, and anchors of it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DEFAULT_DB_ALIAS, DatabaseError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs import chain
from jobs.management import numbers, shell
from jobs.models.audit import AuditEntry
from jobs.operations import printed

BROKEN, USAGE, NO_DATABASE = 1, shell.USAGE, shell.NO_DATABASE
LONGEST_FILE = 64 * 1024 * 1024


class Command(BaseCommand):
    """Verifies, anchors and lists the audit chain."""

    requires_system_checks = []

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Look at what people did, and prove that nobody changed the record of it. Exit codes: 0 whole, "
            "1 broken, 2 bad usage, 4 the database cannot be used."
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar=_("VERB"))

        def verb(name: str, text: str) -> ArgumentParser:
            added: ArgumentParser = verbs.add_parser(name, help=text, description=text)
            return added

        verify = verb("verify", _("Walk the whole chain and say everything that is wrong with it."))
        verify.add_argument("--json", action="store_true", help=_("print one JSON document"))
        verify.add_argument(
            "--anchors", metavar=_("FILE"), type=Path, help=_("also compare with the anchors in this file")
        )
        anchor = verb("anchor", _("Print where the chain ends, sealed, as one line of JSON."))
        anchor.add_argument(
            "--file", metavar=_("FILE"), type=Path, help=_("add the line to this file; keep it elsewhere")
        )
        _list_arguments(verb("list", _("List entries, newest first.")))

    def handle(self, *_args: Any, **options: Any) -> None:
        self.json: bool = options.get("json", False)
        try:
            getattr(self, f"_{options['verb']}")(options)
        except DatabaseError as error:
            self._end(NO_DATABASE, "NO_DATABASE", shell.unusable(error))

    def _verify(self, options: dict[str, Any]) -> None:
        lines = self._lines(options["anchors"]) if options["anchors"] else []
        report = chain.verify(DEFAULT_DB_ALIAS, lines)
        chain.note(DEFAULT_DB_ALIAS, report)
        document = {
            "ok": report.ok,
            "entries": report.entries,
            "last": report.last,
            "anchors": report.anchors,
            "newest_anchor": report.newest_anchor,
            "counts": report.counts,
            "findings": [
                {"fault": f.fault, "seq": f.seq, "until": f.until, "line": f.line, "text": f.sentence()}
                for f in report.findings
            ],
        }
        self._print(document, _told(report))
        if not report.ok:
            sys.exit(BROKEN)

    def _anchor(self, options: dict[str, Any]) -> None:
        place: Path | None = options["file"]
        known = self._lines(place) if place and place.exists() else []
        try:
            line = chain.anchor(DEFAULT_DB_ALIAS, known).line()
        except chain.NothingToAnchor as broken:
            self._end(BROKEN, "BROKEN", str(broken))
        if place:
            try:
                with place.open("a", encoding="ascii") as file:
                    file.write(f"{line}\n")
            except OSError as error:
                self._end(USAGE, "FILE", _("%(file)s: %(error)s.") % {"file": place, "error": error.strerror})
        self.stdout.write(line)

    def _list(self, options: dict[str, Any]) -> None:
        entries = AuditEntry.objects.order_by("-seq")
        if options["object"]:
            kind, key = options["object"]
            entries = entries.filter(object_type=kind, object_id=key)
        if options["actor"]:
            entries = entries.filter(actor=options["actor"])
        if options["before"]:
            entries = entries.filter(seq__lt=options["before"])
        found = list(entries.values(*chain.FIELDS)[: options["limit"]])
        self._print({"entries": found}, (_line(entry) for entry in found))

    def _lines(self, place: Path) -> list[str]:
        try:
            if place.stat().st_size > LONGEST_FILE:
                raise OSError(0, _("longer than any file of anchors"))
            return place.read_text("utf-8", errors="replace").splitlines()
        except OSError as error:
            self._end(USAGE, "FILE", _("%(file)s: %(error)s.") % {"file": place, "error": error.strerror})

    def _print(self, document: dict[str, Any], lines: Iterable[str]) -> None:
        for line in [printed.as_json(document)] if self.json else lines:
            self.stdout.write(line)

    def _end(self, status: int, code: str, text: str) -> NoReturn:
        if self.json:
            self.stdout.write(printed.as_json({"error": {"code": code, "text": text}}))
        else:
            self.stderr.write(printed.plain(text))
        sys.exit(status)


def _told(report: chain.Report) -> Iterable[str]:
    for finding in report.findings:
        yield printed.plain(finding.sentence())
    if (total := report.counts.total()) > len(report.findings):
        yield _("… and %s more.") % (total - len(report.findings))
    if report.ok:
        yield _("The chain is whole: %s entries.") % report.entries
    else:
        faults = report.counts.total()
        yield ngettext(
            "The chain is BROKEN: %(faults)s fault in %(entries)s entries.",
            "The chain is BROKEN: %(faults)s faults in %(entries)s entries.",
            faults,
        ) % {"faults": faults, "entries": report.entries}
    if report.newest_anchor is None:
        yield _("Without an anchor nobody can tell whether its end was cut off together with its head.")


def _line(entry: dict[str, Any]) -> str:
    what = f"{entry['action']} {entry['object_type']}:{entry['object_id']}"
    said = f"{entry['actor']} ({entry['source']}): {entry['reason']}"
    return f"{entry['seq']:>6}  {printed.plain(entry['at'])}  {printed.plain(what)}  {printed.plain(said)}"


def _list_arguments(parser: ArgumentParser) -> None:
    most = settings.INTERLOCK["PAGE_ROWS"]
    parser.add_argument("--json", action="store_true", help=_("print one JSON document"))
    parser.add_argument(
        "--object", type=_object, metavar=_("TYPE:ID"), help=_("only this one, as in job:ID or queue:NAME")
    )
    parser.add_argument("--actor", default="", type=shell.text, help=_("only what this actor did"))
    parser.add_argument(
        "--before",
        type=numbers.whole(1, 2**62),
        metavar=_("NUMBER"),
        help=_("only entries older than this one"),
    )
    parser.add_argument(
        "--limit",
        type=numbers.whole(1, most),
        metavar=_("NUMBER"),
        default=min(50, most),
        help=_("at most so many; %(most)s is the bound") % {"most": most},
    )


def _object(text: str) -> tuple[str, str]:
    kind, colon, key = shell.text(text).partition(":")
    if not (kind and colon and key):
        raise ArgumentTypeError(_("TYPE:ID is needed, as in job:ID"))
    return kind, key
