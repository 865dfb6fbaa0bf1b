"""`manage.py second_factor`: help somebody who lost the device that shows the codes."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.utils.translation import gettext as _

from jobs.management import shell
from jobs.operations import factors, printed


class Command(shell.OperatorCommand):
    """Takes a person's device away; audited."""

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Take away the second factor of a person who lost it; the password alone is asked then, and with "
            "REQUIRE_SECOND_FACTOR another device before anything else. It takes the permission "
            "auth.change_user. Exit codes: 0 done, 1 refused, 2 bad usage, 4 the database cannot be used."
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar=_("VERB"))
        reset = verbs.add_parser("reset", help=_("Take a person's device away."))
        shell.look_arguments(reset)
        shell.act_arguments(reset)
        reset.add_argument("user", metavar=_("USER"), type=shell.text)

    def act(self, options: dict[str, Any]) -> None:
        name = options["user"]
        factors.reset(name, actor=self.person(options), reason=options["reason"], using=options["database"])
        text = _("%(user)s has no second factor any more.") % {"user": name}
        self.tell({"user": name, "second_factor": False}, [printed.plain(text)])
