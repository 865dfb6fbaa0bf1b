"""`manage.py quarantine`: after a failover, hold what may have been sent without a trace of it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.management import shell
from jobs.operations import actor, printed, quarantine


class Command(shell.OperatorCommand):
    """Holds the unfinished jobs of kinds with non-replayable effects."""

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Hold unfinished jobs whose effect slots may have been lost (docs/operations.md). Close claims "
            "first. Exit codes: 0 done, 1 refused, 2 bad usage, 4 the database cannot be used."
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        shell.look_arguments(parser)
        shell.act_arguments(parser)
        parser.add_argument(
            "--non-replayable",
            action="store_true",
            required=True,
            help=_("every kind of job that ever left a slot of a non-replayable effect"),
        )
        parser.add_argument(
            "--kind",
            action="append",
            type=shell.text,
            default=[],
            help=_("this kind too, whose slots may all be lost; may be given several times"),
        )
        parser.add_argument("--dry-run", action="store_true", help=_("count only"))

    def act(self, options: dict[str, Any]) -> None:
        using = options["database"]
        by = self.person(options)
        actor.admit(by, actor.HOLD)
        kinds = sorted({*quarantine.suspect_kinds(using), *options["kind"]})
        if options["dry_run"]:
            held = sum(len(page) for page in quarantine.pages(kinds, using))
        else:
            held = sum(quarantine.quarantine(kinds, actor=by, reason=options["reason"], using=using))
        text = ngettext("%(held)s job held.", "%(held)s jobs held.", held)
        if options["dry_run"]:
            text = ngettext("%(held)s job would be held.", "%(held)s jobs would be held.", held)
        names = ", ".join(kinds) or _("none")
        lines = [
            _("Kinds: %s.") % printed.plain(names),
            text % {"held": held},
            _("Only kinds of which a slot row is left are found; name others with --kind."),
        ]
        self.tell({"kinds": kinds, "held": held, "dry_run": options["dry_run"]}, lines)
