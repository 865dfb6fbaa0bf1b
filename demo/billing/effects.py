"""What billing does to the world outside: charges an account, and sends mail."""

from __future__ import annotations

import smtplib
from decimal import Decimal

from django.core.mail import EmailMessage

from demo.billing import payments
from jobs import errors
from jobs.effect_kinds import Declined, Found, NotFound, Request, Sent, effect_kind

MAIL_REFUSED = "MAIL_REFUSED_FAILED"
CHARGE_BOOK = """\
1. Press “Inquire now”: what the service finds under the key, with the same payload, settles the case.
2. Or ask it from a shell: curl "$DEMO_PROVIDER_URL/charges?key={key}"
3. It lists a charge of {amount}: rule “It happened”, with the id that begins with ch_ as the reference.
4. It lists none after settle-by: rule “It did not happen”. The charge is sent again under the same key.
5. It does not answer: park the case until it does, and do not guess.
"""
MAIL_BOOK = """\
1. Look into the mail server’s log for the message id <{key}@interlock.invalid>.
2. No log at hand: ask whoever should have got “{label}”.
3. It went out: rule “It happened”, with that message id as the reference.
4. It did not: rule “It did not happen”. A second person confirms, and somebody approves the next sending.
5. Nobody can tell: rule “Close it, send nothing”, and write by hand. No mail is better than two.
"""

for _code, _meaning in (
    (payments.DECLINED, "The payment service declined the charge; nothing was charged."),
    (payments.REFUSED, "The payment service refused the order for its form; nothing was charged."),
    (MAIL_REFUSED, "The mail server refused sender or recipients; nothing was sent."),
):
    errors.register(_code, errors.Family.CONTENT, meaning=_meaning)


@effect_kind(
    "payments.charge",
    replay="queryable",
    label="{invoice} to {account}",
    amount="amount",
    currency="currency",
    target="account",
    provider="payment service",
    # An inquiry is answered from the ledger that is charged into: what is not there soon never will be.
    settle_after=5,
    in_flight=10,
    second_person=Decimal(100),
    reference=r"ch_[0-9a-f]{24}",
    runbook=CHARGE_BOOK,
    sla=4 * 3600,
    owner="demonstration",
)
def charge(request: Request) -> Sent:
    """Charge one invoice."""
    return payments.charge(request)


@charge.inquire
def look(request: Request) -> Found | NotFound:
    """Ask the payment service what became of it."""
    return payments.look(request)


@effect_kind(
    "mail.send",
    replay="non_replayable",
    approval="always",
    label="{subject} to {to}",
    target="to",
    provider="mail server",
    runbook=MAIL_BOOK,
    sla=24 * 3600,
    owner="demonstration",
)
def send_mail(request: Request) -> Sent:
    """Send one mail. No server can be asked afterwards, so a person approves each sending."""
    payload = request.payload
    # The same for every sending of this effect: a reader's program can tell a second copy.
    name = f"<{request.key}@interlock.invalid>"
    mail = EmailMessage(payload["subject"], payload["body"], to=[payload["to"]], headers={"Message-ID": name})
    try:
        mail.send()
    except (smtplib.SMTPRecipientsRefused, smtplib.SMTPSenderRefused) as refused:
        # Both come before the first byte of the mail.
        raise Declined(MAIL_REFUSED, str(refused)) from None
    return Sent({"message_id": name}, name)
