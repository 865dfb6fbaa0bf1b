"""`manage.py workers`: who claims, and how to refuse one of them for good."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.management import shell
from jobs.operations import actor, cluster, exposure, printed, workers

_LINE = "{:<9}  {:>6}  {:>5}  {:<19}  {}"


class Command(shell.OperatorCommand):
    """Lists workers and fences one."""

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "List workers, or fence one: its leases end now and nothing that it writes is accepted any more; "
            "its code may still be running. Exit codes: 0 done, 1 refused, 2 bad usage, 3 a transaction "
            "holds the scheduler up: try again, 4 the database cannot be used."
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar=_("VERB"))
        shell.look_arguments(verbs.add_parser("list", help=_("List workers, the one heard of last first.")))
        fence = verbs.add_parser("fence", help=_("Refuse one worker for good; each job costs an attempt."))
        shell.look_arguments(fence)
        shell.act_arguments(fence)
        fence.add_argument("id", metavar=_("ID"), type=shell.text)
        fence.add_argument(
            "--yes", action="store_true", help=_("do not ask; without it, --json only tells the price")
        )

    def act(self, options: dict[str, Any]) -> None:
        {"list": self._list, "fence": self._fence}[options["verb"]](options)

    def _list(self, options: dict[str, Any]) -> None:
        rows = workers.listed(options["database"], limit=settings.INTERLOCK["PAGE_ROWS"])
        lines = [_LINE.format(_("state"), _("leases"), _("epoch"), _("last beat"), _("id"))]
        for row in rows:
            values = (row["state"], row["leases"], row["scheduler_epoch"], row["beat_at"], row["id"])
            lines.append(_LINE.format(*(printed.plain(value) for value in values)))
        self.tell({"workers": rows}, lines)

    def _fence(self, options: dict[str, Any]) -> None:
        by = self.person(options)
        actor.admit(by, actor.FENCE)  # before the price is told
        price = exposure.of_worker(options["id"], options["database"])
        if not options["yes"]:
            if self.json:
                self.tell({"fenced": False, "price": price.document()}, [])
                sys.exit(shell.REFUSED)
            for line in printed.exposure(price):
                self.stdout.write(line)
            self.confirm("fence")
        ended = cluster.fence_worker(
            options["id"], actor=by, reason=options["reason"], using=options["database"]
        )
        document = {"fenced": True, "id": options["id"], "leases_ended": ended, "price": price.document()}
        text = ngettext(
            "Fenced %(id)s; %(ended)s lease ended and is taken back at the next recovery.",
            "Fenced %(id)s; %(ended)s leases ended and are taken back at the next recovery.",
            ended,
        )
        self.tell(document, [printed.plain(text % {"id": options["id"], "ended": ended})])
