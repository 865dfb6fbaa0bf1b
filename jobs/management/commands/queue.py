"""`manage.py queue`: pause and resume one queue, and list those that somebody paused."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from jobs.ledger.clock import clock
from jobs.management import shell
from jobs.models import Queue
from jobs.operations import cluster, printed

FIELDS = ("name", "paused_at", "paused_until", "paused_by", "pause_reason")


class Command(shell.OperatorCommand):
    """Pauses, resumes and lists queues."""

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Pause or resume one queue: nothing of it is claimed, what runs goes on. Exit codes: 0 done, "
            "1 refused, 2 bad usage, 3 a transaction holds the scheduler up: try again, 4 the database "
            "cannot be used."
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar=_("VERB"))

        def verb(name: str, text: str) -> ArgumentParser:
            added: ArgumentParser = verbs.add_parser(name, help=text, description=text)
            shell.look_arguments(added)
            return added

        pause = verb("pause", _("Stop claims of one queue."))
        resume = verb("resume", _("Open one queue again."))
        for acting in (pause, resume):
            acting.add_argument("name", metavar=_("NAME"), type=shell.text)
            shell.act_arguments(acting)
        pause.add_argument(
            "--until", type=shell.instant, metavar=_("INSTANT"), help=_("open again then, by itself")
        )
        verb("list", _("List the queues that are paused."))

    def act(self, options: dict[str, Any]) -> None:
        {"pause": self._pause, "resume": self._resume, "list": self._list}[options["verb"]](options)

    def _pause(self, options: dict[str, Any]) -> None:
        cluster.pause_queue(
            options["name"],
            actor=self.person(options),
            until=options["until"],
            reason=options["reason"],
            using=options["database"],
        )
        row = Queue.objects.using(options["database"]).get(name=options["name"])
        self.tell(_document(row) | {"changed": True}, [_line(row)])

    def _resume(self, options: dict[str, Any]) -> None:
        changed = cluster.resume_queue(
            options["name"], actor=self.person(options), reason=options["reason"], using=options["database"]
        )
        lines = [_("The queue %s is open.") % printed.plain(options["name"])]
        if not changed:
            lines.append(_("It was so already; nothing was changed."))
        self.tell({"name": options["name"], "paused_at": None, "changed": changed}, lines)

    def _list(self, options: dict[str, Any]) -> None:
        most, now = settings.INTERLOCK["PAGE_ROWS"], clock(options["database"])
        rows = Queue.objects.using(options["database"]).filter(paused_at__isnull=False).order_by("name")
        paused = [row for row in rows[:most] if row.paused_until is None or row.paused_until > now]
        lines = [_line(row) for row in paused] or [_("No queue is paused.")]
        self.tell({"queues": [_document(row) for row in paused]}, lines)


def _document(row: Queue) -> dict[str, Any]:
    return {name: getattr(row, name) for name in FIELDS}


def _line(row: Queue) -> str:
    text = _("%(name)s is paused since %(since)s by %(by)s: %(reason)s")
    if row.paused_until:
        text = _("%(name)s is paused since %(since)s until %(until)s by %(by)s: %(reason)s")
    values = {
        "name": row.name,
        "since": row.paused_at and printed.plain(row.paused_at),
        "until": row.paused_until and printed.plain(row.paused_until),
        "by": row.paused_by,
        "reason": row.pause_reason,
    }
    return printed.plain(text % values)
