"""`manage.py effects`: cases of outside effects without a browser: look, park, inquire, rule, approve."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any, ClassVar

from django.conf import settings
from django.utils.translation import gettext as _

from jobs.ledger.clock import clock
from jobs.management import numbers, shell
from jobs.models import Case, Proposal
from jobs.models.case import CaseKind, Verdict
from jobs.operations import approvals, cases, casework, docket, door, lookup, printed, rulings
from jobs.operations.rulings import Proposed

PROPOSED = 5
_USAGE = (
    *("REASON_MISSING", "REASON_TOO_LONG", "REASON_CODE", "RESPONSE_INVALID", "REFERENCE_TOO_LONG"),
    *("PARK_PAST", "PARK_FAR", "PARK_WHY_LONG"),
)
_CODES = dict.fromkeys(_USAGE, shell.USAGE) | dict.fromkeys(
    ("CASE_NOT_FOUND", "PROPOSAL_NOT_FOUND"), shell.NOT_FOUND
)


class Command(shell.OperatorCommand):
    """Lists and shows cases, asks providers, parks, and rules."""

    codes: ClassVar[dict[str, int]] = _CODES
    missing = "CASE_NOT_FOUND"

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Look at the cases of outside effects and decide them. `show` prints the snapshot that `rule`, "
            "`approve` and `reject` ask for: what you decide on is what you saw. An id may be cut to its "
            "first digits (at least 8) where that is unique. Exit codes: 0 done, 1 refused, 2 bad usage, "
            "3 no such case, 4 the database cannot be used, 5 asked for, a second person decides."
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar=_("VERB"))

        def verb(name: str, text: str) -> ArgumentParser:
            added: ArgumentParser = verbs.add_parser(name, help=text, description=text)
            shell.json_argument(added)
            return added

        _list_arguments(verb("list", _("List the cases that wait for a person, the oldest first.")))
        show = verb("show", _("Show all that is known of one case, and what may be ruled."))
        show.add_argument("id", metavar=_("CASE"))
        _as(show, required=False, text=_("judge what may be ruled for this person"))
        inquire = verb("inquire", _("Ask the provider now what became of the effect."))
        inquire.add_argument("id", metavar=_("CASE"))
        _as(inquire)
        _park_arguments(verb("park", _("Put a case aside until a time; its time limit runs on.")))
        _rule_arguments(verb("rule", _("Decide a case. Some decisions then wait for a second person.")))
        for name, text in (
            ("approve", _("Confirm as a second person what another one asked for.")),
            ("reject", _("Decline what another one asked for, or take your own back.")),
        ):
            second = verb(name, text)
            second.add_argument("id", metavar=_("PROPOSAL"), help=_("as `show` names it"))
            _decision(second)

    def act(self, options: dict[str, Any]) -> None:
        getattr(self, f"_{options['verb']}")(options)

    # -- looking ------------------------------------------------------------------------------------------

    def _list(self, options: dict[str, Any]) -> None:
        found = docket.waiting(
            kinds=options["case"] or (),
            effect_kind=options["kind"],
            every=options["all"],
            limit=options["limit"],
        )
        now = clock()
        entries = [docket.entry(case, now, approvals.asked_of(case, now)) for case in found]
        self.tell({"cases": entries}, docket.listed(entries))

    def _show(self, options: dict[str, Any]) -> None:
        view = cases.look(lookup.find(Case, options["id"]).id)
        user = door.at_shell(options["person"]) if options["person"] else door.Anybody()
        found = docket.document(view, cases.offers(view, user))
        self.tell(found, docket.shown(found))

    # -- acting -------------------------------------------------------------------------------------------

    def _inquire(self, options: dict[str, Any]) -> None:
        case = lookup.find(Case, options["id"])
        settled = casework.inquire_now(case.id, actor=door.at_shell(options["person"]))
        status = settled.value if settled else ""
        text = _("The effect is %s now.") % status if status else _("That settled nothing; see the evidence.")
        self.tell({"case": case.id, "settled": status or None}, [text])

    def _park(self, options: dict[str, Any]) -> None:
        case = lookup.find(Case, options["id"])
        until = options["until"]
        casework.park(case.id, until, actor=door.at_shell(options["person"]), why=options["why"])
        text = (
            _("Parked until %s; its time limit runs on.") % printed.plain(until)
            if until
            else _("It is back.")
        )
        self.tell({"case": case.id, "parked_until": until, "parked_why": options["why"]}, [text])

    def _rule(self, options: dict[str, Any]) -> None:
        case = lookup.find(Case, options["id"])
        done = rulings.rule(
            case.id,
            options["verdict"],
            actor=self.person(options),
            reason_code=options["reason_code"],
            reason=options["reason"],
            seen_version=case.version,  # the snapshot covers it
            snapshot=options["snapshot"],
            reference=options["reference"],
            response=options["response"],
            compensate=options["compensate"],
            attested=options["attest"],
            arguments=options["arguments"],
            effects=options["effects"],
        )
        self._tell(case, done)
        if isinstance(done, Proposed):
            sys.exit(PROPOSED)

    def _approve(self, options: dict[str, Any]) -> None:
        proposal = lookup.find(Proposal, options["id"])
        done = rulings.approve(
            proposal.id, actor=self.person(options), snapshot=options["snapshot"], reason=options["reason"]
        )
        self._tell(proposal.case, done)

    def _reject(self, options: dict[str, Any]) -> None:
        proposal = lookup.find(Proposal, options["id"])
        rulings.reject(
            proposal.id, actor=self.person(options), snapshot=options["snapshot"], reason=options["reason"]
        )
        document = {"case": proposal.case_id, "proposal": proposal.id, "decision": "rejected"}
        self.tell(document, [_("Rejected; the case stays open.")])

    def _tell(self, case: Case, done: rulings.Outcome) -> None:
        document: dict[str, Any] = {"case": case.id, "verdict": done.verdict.value, "audit": done.audit_seq}
        if isinstance(done, Proposed):
            text = _("Asked for %(verdict)s; another person decides on proposal %(id)s until %(until)s.")
            shown = {
                "verdict": done.verdict.value,
                "id": done.proposal_id,
                "until": printed.plain(done.expires_at),
            }
            document |= {"proposal": done.proposal_id, "expires_at": done.expires_at}
        else:
            text = _("Ruled %(verdict)s: the effect is %(effect)s, the job %(job)s.")
            shown = {
                "verdict": done.verdict.value,
                "effect": done.effect_status,
                "job": done.job_status.value,
            }
            document |= {"effect_status": shown["effect"], "job_status": shown["job"]}
        self.tell(document, [printed.plain(text % shown)])


def _list_arguments(parser: ArgumentParser) -> None:
    most = settings.INTERLOCK["PAGE_ROWS"]
    parser.add_argument(
        "--case",
        action="append",
        choices=[kind.value for kind in CaseKind],
        help=_("only cases of this kind; may be given several times"),
    )
    parser.add_argument("--kind", default="", type=shell.text, help=_("only this kind of effect"))
    parser.add_argument("--all", action="store_true", help=_("closed ones too, the newest first"))
    parser.add_argument(
        "--limit",
        type=numbers.whole(1, most),
        default=min(50, most),
        help=_("at most so many; %(most)s is the bound") % {"most": most},
    )


def _park_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar=_("CASE"))
    _as(parser)
    when = parser.add_mutually_exclusive_group(required=True)
    when.add_argument("--until", type=shell.instant, metavar=_("INSTANT"), help=_("at most seven days ahead"))
    when.add_argument("--back", action="store_true", help=_("bring it back now"))
    parser.add_argument("--why", default="", type=shell.text, help=_("shown beside it while it is parked"))


def _rule_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar=_("CASE"))
    parser.add_argument("verdict", choices=[verdict.value for verdict in Verdict], metavar=_("VERDICT"))
    _decision(parser)
    parser.add_argument("--reason-code", required=True, type=shell.text, help=_("from the verdict's list"))
    parser.add_argument("--reference", default="", type=shell.text, help=_("the provider's, for `happened`"))
    parser.add_argument("--response", type=_json, help=_("JSON that the job gets as the answer (`happened`)"))
    parser.add_argument("--compensate", action="store_true", help=_("it happened, and has to be undone"))
    parser.add_argument(
        "--attest", action="store_true", help=_("you vouch that the sender is dead (`did_not_happen`)")
    )
    parser.add_argument("--arguments", type=_json, help=_("the job's new arguments as JSON (`revise`)"))
    parser.add_argument(
        "--effects",
        default="",
        choices=["repeat_effects", "keep_effects"],
        help=_("what becomes of effects that took place (`revise`)"),
    )


def _decision(parser: ArgumentParser) -> None:
    _as(parser)
    parser.add_argument(
        "--reason", required=True, type=shell.text, help=_("why, in your own words; it is kept")
    )
    parser.add_argument("--snapshot", required=True, type=shell.text, help=_("as `show` printed it"))


def _as(parser: ArgumentParser, *, required: bool = True, text: str = "") -> None:
    parser.add_argument(
        "--as",
        dest="person",
        required=required,
        type=shell.text,
        default="",
        metavar=_("USER"),
        help=text or _("whose permission this uses; kept too"),
    )


def _json(text: str) -> Any:
    try:
        return json.loads(shell.text(text))
    except (ValueError, RecursionError):
        raise ArgumentTypeError(_("JSON is needed")) from None
