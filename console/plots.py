"""What happens in the practice inbox: six cases, and what each choice in them is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from jobs.models.case import CaseKind, Verdict
from jobs.status import EffectStatus

WAIT = "wait"
"""What can always be chosen: rule nothing now."""
RIGHT, WRONG, POOR = "right", "wrong", "poor"


@dataclass(frozen=True)
class Answer:
    """What one choice is worth, and why."""

    worth: str
    text: str


@dataclass(frozen=True)
class Plot:
    """What is particular about a scenario; lengths are seconds before now."""

    kind: CaseKind
    label: str
    amount: str
    target: str
    effect: str = "payments.charge"
    status: EffectStatus = EffectStatus.UNKNOWN
    opened: int = 840
    report: str = ""
    settle: int | None = None
    key_valid: int = 86_400
    grants: int = 1
    found: tuple[tuple[str, str, str, int, str], ...] = ()
    """Evidence besides the report: source, outcome, body, seconds ago, reference."""
    words: tuple[tuple[str, str, int], ...] = ()
    """Comments: by, text, seconds ago."""
    payload: dict[str, Any] = field(default_factory=dict)
    brought: dict[str, Any] | None = None
    asked: bool = False
    inquirable: bool = False


Told = tuple[Plot, str, dict[str, Answer]]


def _answer_lost() -> Told:
    return (
        Plot(
            CaseKind.UNKNOWN,
            "INV-2026-0412",
            "42.00",
            "customer 7781",
            report="ReadTimeout: capture 42.00 EUR: no answer after 10.0 s",
            key_valid=600,
            words=(
                (
                    "grace",
                    _(
                        "In the provider's dashboard: charge R-77120, 42.00 EUR, captured, with our key in "
                        "its description."
                    ),
                    300,
                ),
            ),
            payload={"amount": "42.00", "currency": "EUR", "customer": "7781", "invoice": "INV-2026-0412"},
        ),
        _("The answer got lost, and a colleague has looked at the provider's."),
        {
            Verdict.HAPPENED: Answer(
                RIGHT,
                _(
                    "The provider has the charge under our key. The job goes on as if the answer had come, "
                    "and the customer pays once. Give R-77120 as the reference: the next reader can check it."
                ),
            ),
            Verdict.DID_NOT_HAPPEN: Answer(
                WRONG,
                _(
                    "It would be sent once more, and the provider honours the key no longer: the customer "
                    "would pay twice. That the answer is missing is no evidence that the charge is."
                ),
            ),
            Verdict.ABANDON: Answer(
                WRONG,
                _(
                    "The job would fail while the money has moved: the customer has paid an invoice that we "
                    "go on asking for."
                ),
            ),
            WAIT: Answer(
                POOR,
                _("Nothing gets worse, but nothing gets clearer either: what there is to know is here."),
            ),
        },
    )


def _not_found_yet() -> Told:
    return (
        Plot(
            CaseKind.UNKNOWN,
            "INV-2026-0433",
            "310.00",
            "customer 1190",
            report="ReadTimeout: capture 310.00 EUR: no answer after 10.0 s",
            opened=420,
            settle=900,
            inquirable=True,
            found=(("inquiry", "not_found", "", 90, ""),),
            payload={"amount": "310.00", "currency": "EUR", "customer": "1190", "invoice": "INV-2026-0433"},
        ),
        _("The provider does not know the charge, and its own records take a quarter of an hour to settle."),
        {
            Verdict.HAPPENED: Answer(
                WRONG,
                _(
                    "Nothing says so. If it did not happen, the invoice would count as paid, and nobody "
                    "would ever charge it."
                ),
            ),
            Verdict.DID_NOT_HAPPEN: Answer(
                WRONG,
                _(
                    "“Not found” proves nothing before settle-by: the charge may still appear, beside the "
                    "second one. So the ruling is refused until then, whoever gives it."
                ),
            ),
            Verdict.ABANDON: Answer(
                WRONG,
                _("It gives up a charge that may have been made, only to have the inbox empty."),
            ),
            WAIT: Answer(
                RIGHT,
                _(
                    "Park it until settle-by. The reconciler asks once more by itself, and if the provider "
                    "still knows nothing, that settles the case without you."
                ),
            ),
        },
    )


def _no_connection() -> Told:
    return (
        Plot(
            CaseKind.UNKNOWN,
            "INV-2026-0450",
            "77.00",
            "customer 3024",
            report="ConnectTimeout: no connection within 5.0 s",
            payload={"amount": "77.00", "currency": "EUR", "customer": "3024", "invoice": "INV-2026-0450"},
            words=(("linus", _("Our proxy shows no connection to the provider in that minute."), 240),),
        ),
        _("No connection was made in time, and the sender is known to have ended."),
        {
            Verdict.HAPPENED: Answer(
                WRONG, _("Nothing left us, so nothing was charged: the invoice would count as paid.")
            ),
            Verdict.DID_NOT_HAPPEN: Answer(
                RIGHT,
                _(
                    "Without a connection nothing can have arrived, and the proxy agrees: reason “It never "
                    "left us”. It is sent again under the same key, once a second person agrees where the "
                    "kind asks one. A time-out of connecting is not one of reading; a connection that is "
                    "refused proves it by itself and opens no case at all."
                ),
            ),
            Verdict.ABANDON: Answer(
                POOR,
                _("Safe, but the charge is wanted and can be made: somebody has to enqueue it anew."),
            ),
            WAIT: Answer(
                POOR,
                _("Nothing more will be learnt: the provider never heard of it."),
            ),
        },
    )


def _two_payloads() -> Told:
    return (
        Plot(
            CaseKind.CONFLICT,
            "INV-2026-0461",
            "42.00",
            "customer 7781",
            status=EffectStatus.COMMITTED,
            payload={"amount": "42.00", "currency": "EUR", "customer": "7781", "invoice": "INV-2026-0461"},
            brought={
                "amount": "43.00",
                "currency": "EUR",
                "customer": "7781",
                "invoice": "INV-2026-0461",
                "memo": "late fee",
            },
        ),
        _("The charge was made. Then the job ran again and brought another amount for the same key."),
        {
            Verdict.USE_RECORDED: Answer(
                RIGHT,
                _(
                    "42.00 was charged, and stays what this key means. The late fee is another charge: a job "
                    "of its own, with a key of its own. And tell the owner that the kind makes its payload "
                    "anew in each run."
                ),
            ),
            Verdict.REBIND: Answer(
                WRONG,
                _(
                    "A key that was ever sent under keeps its payload, so this is refused: the provider "
                    "would answer for the first amount while our record said the second."
                ),
            ),
            Verdict.REVISE: Answer(
                WRONG,
                _(
                    "A revised job gets new keys: it would charge 43.00 beside the 42.00, and nothing stands "
                    "against it."
                ),
            ),
            Verdict.ABANDON: Answer(
                WRONG, _("The job would fail although its charge took place and is recorded.")
            ),
            WAIT: Answer(
                POOR,
                _("The job stands still meanwhile, and two payloads will not become one by waiting."),
            ),
        },
    )


def _approval() -> Told:
    return (
        Plot(
            CaseKind.APPROVAL,
            "RENT-2026-12",
            "18400.00",
            "…9031",
            effect="payments.transfer",
            status=EffectStatus.PREPARED,
            grants=0,
            asked=True,
            payload={"amount": "18400.00", "currency": "EUR", "to": "DE…9031", "reference": "rent December"},
            words=(
                ("billing", _("The landlord's new account came by e-mail this morning, please hurry."), 600),
            ),
        ),
        _("Somebody asks leave to send. Nothing has left us yet."),
        {
            Verdict.SEND: Answer(
                WRONG,
                _(
                    "A new account, by e-mail, in a hurry: that is how invoice fraud looks, and a transfer "
                    "does not come back. Approving means that you have checked, not that it looks plausible."
                ),
            ),
            Verdict.ABANDON: Answer(
                POOR,
                _("Safe, but if the account is right the rent stays unpaid. Ask first: it costs one call."),
            ),
            WAIT: Answer(
                RIGHT,
                _(
                    "Park it and call the landlord on the number that you had before. Then approve with "
                    "“I have checked it” and say whom you spoke to, or abandon it and raise the alarm."
                ),
            ),
        },
    )


def _contradiction() -> Told:
    return (
        Plot(
            CaseKind.CONTRADICTION,
            "INV-2026-0399",
            "120.00",
            "customer 5560",
            status=EffectStatus.COMMITTED,
            grants=2,
            inquirable=True,
            found=(
                ("person", "absent", _("ruled by ada: it stands in no statement"), 720, ""),
                ("inquiry", "committed", '{"charge": "R-76001", "amount": "120.00"}', 300, "R-76001"),
                ("inquiry", "found", '{"charge": "R-76388", "amount": "120.00"}', 90, "R-76388"),
            ),
            payload={"amount": "120.00", "currency": "EUR", "customer": "5560", "invoice": "INV-2026-0399"},
        ),
        _("It was ruled that the first charge did not happen, and it was sent again. Now both are there."),
        {
            Verdict.ACKNOWLEDGE: Answer(
                POOR,
                _(
                    "It closes the case and changes no record, nor the customer's account. Right once the "
                    "second charge is refunded: with “It was made good” and the refund's reference."
                ),
            ),
            WAIT: Answer(
                RIGHT,
                _(
                    "First refund R-76388 outside and tell who ruled: the customer has paid twice. Then "
                    "acknowledge, with the refund's reference. The job is held until somebody does, so take "
                    "the case and set a time."
                ),
            ),
        },
    )


PLOTS: dict[str, Callable[[], Told]] = {
    "answer-lost": _answer_lost,
    "not-found-yet": _not_found_yet,
    "no-connection": _no_connection,
    "two-payloads": _two_payloads,
    "approval": _approval,
    "contradiction": _contradiction,
}
