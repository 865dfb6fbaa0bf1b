"""Invoices through the queue to a real payment service that misbehaves, and mail that a person approves."""

from __future__ import annotations

import io
import smtplib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.core.management import CommandError, call_command

from demo.billing import effects, invoices, payments, trouble
from demo.billing.kinds import charge, remind
from jobs.effect_kinds import AlreadyThere, Declined, Found, NotFound, NotSent, Request, Verdict
from jobs.models import Case, EffectSlot, Job
from jobs.worker.loop import Worker
from tests.provider import Provider

SAMPLE = Path(__file__).parents[2] / "demo" / "files" / "invoices.csv"
HEAD = "invoice,account,amount,currency\n"
ORDER = {"account": "acme", "amount": "12.50", "currency": "EUR", "invoice": "INV-1"}


@pytest.fixture(scope="module")
def _service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with Provider.running(tmp_path_factory.mktemp("provider"), "--allow-reset") as provider:
        yield provider


@pytest.fixture
def provider(_service: Provider, settings: Any) -> Iterator[Provider]:
    """A payment service with an empty ledger and no faults."""
    settings.DEMO_PROVIDER_URL = _service.url
    _service.call("POST", "reset")
    yield _service
    _service.lift()


def request(key: str = "k-1", **fields: str) -> Request:
    return Request(key=key, payload=ORDER | fields)


def work() -> None:
    worker = Worker(queues=["billing"], kinds=["billing.charge", "billing.remind"], concurrency=4)
    while worker.step():
        pass


# -- what an answer proves


def test_a_charge_is_answered_with_the_same_record_however_often_it_is_sent(provider: Provider) -> None:
    first, second = payments.charge(request()), payments.charge(request())
    assert first == second
    assert effects.charge.is_reference(first.reference)
    assert first.response == {"charge": first.reference, **ORDER}
    assert provider.ledger()["count"] == 1


def test_an_inquiry_finds_what_was_charged_and_nothing_else(provider: Provider) -> None:
    assert payments.look(request()) == NotFound()
    sent = payments.charge(request())
    assert payments.look(request()) == Found(sent.response, sent.reference, payload=ORDER)


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"account": "declined-1"}, payments.DECLINED), ({"amount": "much"}, payments.REFUSED)],
)
def test_a_refusal_is_one_only_where_the_service_says_so(
    provider: Provider, fields: dict[str, str], code: str
) -> None:
    with pytest.raises(Declined) as refused:
        payments.charge(request(**fields))
    assert refused.value.code == code
    assert effects.charge.judge(refused.value) is Verdict.DECLINED
    assert provider.ledger()["count"] == 0


def test_a_key_that_was_used_for_another_order_is_a_reason_to_inquire(provider: Provider) -> None:
    payments.charge(request())
    with pytest.raises(AlreadyThere) as there:
        payments.charge(request(amount="13.00"))
    assert effects.charge.judge(there.value) is Verdict.UNKNOWN


@pytest.mark.parametrize("fault", ["drop", "drop_before", "error", "act_then_error", "garbage"])
def test_what_cannot_be_read_proves_nothing(provider: Provider, fault: str) -> None:
    provider.fault(fault)
    with pytest.raises(Exception) as broken:  # noqa: PT011  (whatever it is)
        payments.charge(request())
    assert effects.charge.judge(broken.value) is Verdict.UNKNOWN


@pytest.mark.parametrize("fault", ["drop", "error", "garbage"])
def test_an_inquiry_that_is_not_answered_is_not_nothing_found(provider: Provider, fault: str) -> None:
    payments.charge(request())
    provider.fault(fault, on="inquire")
    with pytest.raises(Exception):  # noqa: B017, PT011
        payments.look(request())


def test_nobody_there_is_proof_that_nothing_was_sent(settings: Any) -> None:
    settings.DEMO_PROVIDER_URL = ""
    with pytest.raises(NotSent) as unset:
        payments.charge(request())
    assert effects.charge.judge(unset.value) is Verdict.NOT_SENT
    settings.DEMO_PROVIDER_URL = "http://127.0.0.1:1/"
    with pytest.raises(OSError, match="refused") as refused:
        payments.charge(request())
    assert effects.charge.judge(refused.value) is Verdict.NOT_SENT


# -- through the queue


@pytest.mark.django_db(transaction=True)
def test_the_sample_file_is_billed_once_and_one_answer_leaves_a_question(provider: Provider) -> None:
    trouble.order(lose_answer=True)
    call_command("bill", str(SAMPLE), stdout=io.StringIO())
    again = io.StringIO()
    call_command("bill", str(SAMPLE), stdout=again)
    assert again.getvalue().count("billed before") == 12
    work()
    assert provider.ledger()["count"] == 12
    assert set(provider.ledger()["by_key"].values()) == {1}
    assert Job.objects.filter(status="succeeded").count() == 11
    # It asks again when the service has had its time, and then a person has to.
    unlucky = Job.objects.get(unique_key=f"invoice:{trouble.INVOICE}")
    assert (unlucky.status, unlucky.wait_reason) == ("waiting", "provider")
    slot = EffectSlot.objects.get(job=unlucky)
    assert (slot.status, slot.label, slot.currency) == ("unknown", "INV-1003 to cobalt-works", "EUR")


@pytest.mark.django_db(transaction=True)
def test_a_second_seed_bills_nothing_again_and_loses_no_further_answer(
    provider: Provider, settings: Any, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = str(tmp_path)
    said = [io.StringIO(), io.StringIO()]
    call_command("demo_seed", stdout=said[0])
    work()
    provider.lift()  # it forgets with its end, and the next start orders trouble anew
    call_command("demo_seed", stdout=said[1])
    work()
    assert "12 invoices billed" in said[0].getvalue()
    assert "billed already" in said[1].getvalue()
    assert provider.ledger()["count"] == 12
    assert [fault["kind"] for fault in provider.call("GET", "faults").json["waiting"]] == ["error"]
    assert Job.objects.filter(kind="billing.remind").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_declined_card_fails_the_job_with_the_services_sentence(provider: Provider) -> None:
    job_id = charge.enqueue(**(ORDER | {"account": "declined-1"})).job_id
    work()
    job = Job.objects.get(pk=job_id)
    assert (job.status, job.error_code) == ("failed", payments.DECLINED)
    assert "declined" in job.error_message


@pytest.mark.django_db(transaction=True)
def test_a_reminder_waits_for_a_person_and_no_mail_leaves() -> None:
    job_id = remind.enqueue(invoice="INV-1", to="a@example.com", amount="1.00", currency="EUR").job_id
    work()
    job = Job.objects.get(pk=job_id)
    assert (job.status, job.wait_reason) == ("waiting", "approval")
    assert [case.kind for case in Case.objects.filter(closed_at=None)] == ["approval"]
    assert mail.outbox == []


# -- mail


LETTER = Request(key="k-1", payload={"to": "a@example.com", "subject": "Reminder", "body": "Please."})


def test_a_mail_carries_the_effects_key_so_that_a_copy_can_be_told() -> None:
    sent = effects.send_mail.send(LETTER)
    (message,) = mail.outbox
    assert message.message()["Message-ID"] == sent.reference == "<k-1@interlock.invalid>"


def test_a_recipient_that_the_server_refuses_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_mail: Any) -> None:
        raise smtplib.SMTPRecipientsRefused({"a@example.com": (550, b"no such user")})

    monkeypatch.setattr("django.core.mail.EmailMessage.send", refuse)
    with pytest.raises(Declined):
        effects.send_mail.send(LETTER)


# -- the file


def refused(text: str | bytes, tmp_path: Path) -> list[str]:
    """Return what the command says of a file that it does not take, having enqueued nothing."""
    path = tmp_path / "bills.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    err = io.StringIO()
    with pytest.raises(CommandError, match="Nothing was enqueued"):
        call_command("bill", str(path), stderr=err)
    assert not Job.objects.exists()
    return [line.removeprefix(f"{path}: ") for line in err.getvalue().splitlines()]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("A-1,acme,12.5,EUR\n", "line 2, amount: '12.5' must be a positive amount with two decimals"),
        ("A-1,acme,0.00,EUR\n", "line 2, amount"),
        ("A-1,acme,-1.00,EUR\n", "line 2, amount"),
        ("A-1,acme,1.00,eur\n", "line 2, currency"),
        ("A-1,ac me,1.00,EUR\n", "line 2, account"),
        (",acme,1.00,EUR\n", "line 2, invoice"),
        ("A-1,acme,1.00\n", "line 2: there are 3 fields, not 4"),
        ("A-1,acme,1.00,EUR\n\nA-1,acme,1.00,EUR\n", "line 4, invoice: A-1 is on line 2 too"),
        ('A-1,"acme,1.00,EUR\n', "this is no CSV in UTF-8"),
        ("", "there is no invoice in it"),
    ],
)
def test_a_bad_row_is_named_by_line_and_field(rows: str, said: str, tmp_path: Path) -> None:
    (line,) = refused(HEAD + rows, tmp_path)
    assert line.startswith(said)


@pytest.mark.django_db
def test_every_bad_row_is_named_and_no_good_one_is_enqueued(tmp_path: Path) -> None:
    said = refused(HEAD + "A-1,acme,1.00,EUR\nA-2,acme,x,EUR\nA-3,acme,1.00,euro\n", tmp_path)
    assert [line.split(":")[0] for line in said] == ["line 3, amount", "line 4, currency"]


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", b"\xff\xfe\x00", HEAD.replace("account", "konto")])
def test_a_file_of_another_kind_is_refused(text: str | bytes, tmp_path: Path) -> None:
    assert len(refused(text, tmp_path)) == 1


@pytest.mark.django_db
def test_more_rows_than_one_file_may_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invoices, "MOST_ROWS", 2)
    rows = "".join(f"A-{n},acme,1.00,EUR\n" for n in range(3))
    assert refused(HEAD + rows, tmp_path) == ["line 4: more than 2 invoices; divide the file"]


@pytest.mark.django_db
def test_an_invoice_that_comes_again_with_another_amount_stops_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "bills.csv"
    path.write_text(HEAD + "A-1,acme,1.00,EUR\n")
    call_command("bill", str(path), stdout=io.StringIO())
    path.write_text(HEAD + "A-2,acme,1.00,EUR\nA-1,acme,2.00,EUR\n")
    err = io.StringIO()
    with pytest.raises(CommandError):
        call_command("bill", str(path), stderr=err)
    assert "line 3, invoice: A-1 has been billed before" in err.getvalue()
    assert Job.objects.count() == 1


@pytest.mark.django_db
def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        call_command("bill", str(tmp_path / "gone.csv"))
