"""`manage.py epoch`: the emergency stop. Says what it costs before it is pressed, and what costs less."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from jobs.ledger import timeline
from jobs.ledger.clock import clock
from jobs.management import shell
from jobs.models import RaiseProposal, Scheduler
from jobs.operations import actor, cluster, exposure, lookup, printed, raising
from jobs.outcomes import Refused


class Command(shell.OperatorCommand):
    """Shows and raises the epoch, opens and closes claims."""

    missing = "RAISE_UNKNOWN"

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Show or raise the epoch, open or close claims (docs/operations.md). Exit codes: 0 done, "
            "1 refused, 2 bad usage, 3 a transaction holds the scheduler up: look at it and try again, "
            "4 the database cannot be used."
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar=_("VERB"))

        def verb(name: str, text: str) -> ArgumentParser:
            added: ArgumentParser = verbs.add_parser(name, help=text, description=text)
            shell.look_arguments(added)
            return added

        verb("show", _("Show the epoch, claims, and who changed them last."))
        raising = verb("raise", _("Refuse every claim made so far. Says first what it costs."))
        shell.act_arguments(raising)
        raising.add_argument(
            "--expected",
            type=shell.epoch,
            required=True,
            metavar=_("EPOCH"),
            help=_("the epoch you saw; refused if somebody raised it since"),
        )
        raising.add_argument(
            "--floor",
            type=shell.epoch,
            default=0,
            metavar=_("EPOCH"),
            help=_("go above this too: after a failover, the highest epoch that anybody has seen"),
        )
        raising.add_argument("--close-claims", action="store_true", help=_("let nothing new start either"))
        raising.add_argument(
            "--yes", action="store_true", help=_("do not ask; without it, --json only tells the price")
        )
        for name, text in (
            ("confirm", _("Raise the epoch as another person asked for it, where that takes two people.")),
            ("decline", _("Decline a raise that was asked for, or take back your own.")),
        ):
            answering = verb(name, text)
            shell.act_arguments(answering)
            answering.add_argument("id", metavar=_("PROPOSAL"), help=_("as `show` names it"))
            if name == "confirm":
                answering.add_argument("--yes", action="store_true", help=_("do not ask"))
        shell.act_arguments(verb("close-claims", _("Let nothing new start; what runs goes on.")))
        shell.act_arguments(verb("open-claims", _("Let workers claim again.")))

    def act(self, options: dict[str, Any]) -> None:
        {
            "show": self._show,
            "raise": self._raise,
            "confirm": self._confirm,
            "decline": self._decline,
            "close-claims": self._claims,
            "open-claims": self._claims,
        }[options["verb"]](options)

    def _show(self, options: dict[str, Any]) -> None:
        row = Scheduler.objects.using(options["database"]).get()
        names = ("epoch", "claims_open", "timeline", "clock_high_water", "changed_at", "changed_by", "reason")
        document = {name: getattr(row, name) for name in names}
        document["timeline_moved"] = timeline.moved(options["database"])
        asked = raising.open_now(clock(options["database"]), row.epoch, using=options["database"])
        document["asked"] = asked and raising.told(asked)
        self.tell(document, _shown(document))

    def _raise(self, options: dict[str, Any]) -> None:
        by = self.person(options)
        actor.admit(by, actor.RAISE)  # before the price is told
        price = exposure.of_all(options["database"])
        if not options["floor"] and timeline.moved(options["database"]):
            self.stderr.write(_("This is another database than claims were made in: give --floor too."))
        if not options["yes"]:
            if self.json:
                self.tell({"raised": False, "price": price.document()}, [])
                sys.exit(shell.REFUSED)
            for line in (*printed.exposure(price), *_narrower(price)):
                self.stdout.write(line)
            self.confirm(f"raise {options['expected']}")
        wish: dict[str, Any] = {
            "actor": by,
            "expected": options["expected"],
            "floor": options["floor"],
            "close_claims": options["close_claims"],
            "reason": options["reason"],
            "using": options["database"],
        }
        if cluster.takes_two():
            asked = raising.propose(**wish)
            text = _("Asked for. Nothing is raised before another person confirms it: epoch confirm %(id)s")
            self.tell({"raised": False, "asked": raising.told(asked)}, [text % {"id": asked.pk}])
            return
        new = cluster.raise_epoch(**wish)
        document = {"raised": True, "epoch": new, "was": options["expected"], "price": price.document()}
        self.tell(document, [_raised(new)])

    def _confirm(self, options: dict[str, Any]) -> None:
        by = self.person(options)
        asked = self._asked(options)
        if not options["yes"]:
            if self.json:
                raise Refused("NOT_CONFIRMED", words="--yes")
            for line in (
                _asked_for(raising.told(asked)),
                *printed.exposure(exposure.of_all(options["database"])),
            ):
                self.stdout.write(line)
            self.confirm(f"raise {asked.epoch}")
        new = raising.approve(asked.pk, actor=by, reason=options["reason"], using=options["database"])
        self.tell({"raised": True, "epoch": new, "was": asked.epoch}, [_raised(new)])

    def _decline(self, options: dict[str, Any]) -> None:
        by, asked = self.person(options), self._asked(options)
        raising.reject(asked.pk, actor=by, reason=options["reason"], using=options["database"])
        self.tell({"raised": False, "declined": asked.pk}, [_("Declined; nothing was raised.")])

    @staticmethod
    def _asked(options: dict[str, Any]) -> RaiseProposal:
        return lookup.find(RaiseProposal, options["id"], using=options["database"])

    def _claims(self, options: dict[str, Any]) -> None:
        opening = options["verb"] == "open-claims"
        verb = cluster.open_claims if opening else cluster.close_claims
        changed = verb(actor=self.person(options), reason=options["reason"], using=options["database"])
        lines = [_("Claims are open.") if opening else _("Claims are closed.")]
        if not changed:
            lines.append(_("It was so already; nothing was changed."))
        self.tell({"claims_open": opening, "changed": changed}, lines)


def _raised(epoch: int) -> str:
    text = _("The epoch is %(epoch)s. Nothing claimed under an older one is accepted any more.")
    return text % {"epoch": epoch}


def _asked_for(asked: dict[str, Any]) -> str:
    text = _("%(by)s asks to raise the epoch %(epoch)s (proposal %(id)s, good until %(until)s): %(reason)s")
    until = printed.plain(asked["expires_at"])
    return printed.plain(text % {**asked, "until": until})


def _shown(row: dict[str, Any]) -> Iterator[str]:
    claims = _("open") if row["claims_open"] else _("closed")
    yield _("Epoch %(epoch)s, claims %(claims)s.") % {"epoch": row["epoch"], "claims": claims}
    if row["changed_at"]:
        text = _("Changed at %(at)s by %(by)s: %(reason)s")
        yield printed.plain(
            text % {"at": printed.plain(row["changed_at"]), "by": row["changed_by"], "reason": row["reason"]}
        )
    if row["asked"]:
        yield _asked_for(row["asked"])
    yield _("Timeline %s.") % (printed.plain(row["timeline"]) or _("not known"))
    if row["timeline_moved"]:
        yield _("This is another database than claims were made in: raise the epoch with a floor.")


def _narrower(price: exposure.Exposure) -> Iterator[str]:
    yield _("What costs less:")
    yield "  " + _("one queue:   manage.py queue pause NAME --as … --reason …  (running jobs go on)")
    worker = printed.plain(price.workers[0][0]) if price.workers else "ID"
    yield "  " + _("one worker:  manage.py workers fence %s --as … --reason …") % worker
    yield "  " + _("nothing new: manage.py epoch close-claims --as … --reason …  (running jobs go on)")
