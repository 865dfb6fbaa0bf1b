"""JSON as people may see it."""

import json

import pytest
from django.db import connection
from django.urls import reverse

from console import payload
from console.payload import Payload
from jobs import handlers
from jobs.models import Attempt, Case, Job
from jobs.operations import cases, docket
from tests import build
from tests.console import matters
from tests.operations import scene

pytestmark = pytest.mark.looks_alike

SECRET = "canary-4111111111111111"


def shown(document, paths=()):
    return [(line.key, line.text, line.kind) for line in Payload.of(json.dumps(document), paths).lines]


def test_document_is_shown_line_by_line():
    assert shown({"a": 1, "b": ["x", None]}) == [
        ("", "{", "open"),
        ('"a": ', "1", "value"),
        ('"b": ', "[", "open"),
        ("", '"x"', "text"),
        ("", "null", "value"),
        ("", "]", "close"),
        ("", "}", "close"),
    ]


def test_secrets_are_masked_by_their_name_and_by_the_kinds_paths():
    lines = Payload.of(json.dumps({"password": "p", "holder": "h", "items": [{"iban": "i"}]}), ["holder"])
    assert lines.masked == 3
    assert not any(line.text == "p" or "h" in line.text for line in lines.lines)


def test_every_part_that_opens_closes_also_where_it_is_cut():
    document = Payload.of(json.dumps({f"k{n}": [[n]] for n in range(1000)}))
    assert document.cut
    assert sum(line.opens for line in document.lines) == sum(line.closes for line in document.lines)
    assert len(document.lines) < 3 * payload.NODES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[" * 5000 + "]" * 5000,
        "[" * 900 + "]" * 900,
        '"\\ud800"',
        '{"\\udfff": "\\ud83d"}',
        "NaN",
        "1e999",
    ],
)
def test_odd_document_is_shown_and_can_be_sent(text):
    for line in Payload.of(text).lines:
        (line.key + line.text).encode()


def test_long_text_is_cut():
    document = Payload.of(json.dumps("x" * 100_000))
    assert document.cut
    assert len(document.lines[0].text) < 2100


@pytest.mark.django_db
def test_secret_of_a_job_is_on_no_page(browse):
    @handlers.job(
        "tests.secretive",
        redact=["card.number", "items.*.pin", "answer"],
        label="{items[0][pin]} {token} for {items[0][who]}",
    )
    def secretive(card, items, token):
        """Keep a secret."""

    arguments = {
        "card": {"number": SECRET},
        "items": [{"pin": SECRET, "who": "ann"}],
        "token": SECRET,
    }
    job_id = Job.objects.enqueue("tests.secretive", arguments, now=build.T0).job_id
    lease = build.claim(job_id)
    assert Job.objects.commit(
        lease,
        {"answer": SECRET, "password": SECRET, "ok": "fine", "said": f"charged {SECRET}", "n": [SECRET]},
        now=build.at(1),
    ).landed
    other = build.claim(Job.objects.enqueue("tests.secretive", arguments, now=build.T0).job_id)
    Job.objects.uncertain(other, "no answer", now=build.at(1))
    case = Case.objects.get(job_id=build.id_of(other))
    client = browse("admin")
    urls = [
        reverse("admin:jobs"),
        reverse("admin:job", args=[job_id]),
        reverse("admin:job", args=[build.id_of(other)]),
        reverse("admin:jobs_attempt_changelist"),
        reverse("admin:jobs_attempt_change", args=[Attempt.objects.get(job_id=job_id).pk]),
        reverse("admin:jobs_effectslot_changelist"),
        reverse("admin:jobs_effectslot_change", args=[case.effect_id]),
        reverse("admin:case", args=[case.pk]),
        reverse("admin:casefile", args=[case.pk]),
    ]
    pages = [client.get(url).content.decode() for url in urls]
    assert [url for url, page in zip(urls, pages, strict=True) if SECRET in page] == []
    assert "fine" in pages[1]
    assert "••• ••• for ann" in pages[1]
    assert pages[1].count("redacted") >= 5
    assert SECRET not in json.dumps(docket.document(cases.look(case.pk), []), default=str)


def _shown(matter, client):
    """Return all that shows an effect: its window, its case, the case file, and the case's document."""
    urls = [reverse("admin:jobs_effectslot_change", args=[matter.slot.pk])]
    urls += [reverse(f"admin:{name}", args=[matter.case.pk]) for name in ("case", "casefile")]
    pages = [client.get(url).content.decode() for url in urls]
    return [*pages, json.dumps(docket.document(matter.look(), []), default=str)]


@pytest.mark.django_db
def test_secret_of_an_effect_is_in_no_window_and_on_no_page(browse):
    matter = scene.unknown(redact=("secretive",))
    text = json.dumps({"secretive": SECRET, "token": SECRET, "ok": "fine"})
    with build.unguarded(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_effectslot SET payload = %s, conflict_payload = %s, response = %s",
            [text, text, text],
        )
    matters.evidence(matter.case, body=text)
    pages = _shown(matter, browse("admin"))
    assert [SECRET in page for page in pages] == [False] * 4
    assert pages[0].count("fine") == 3


@pytest.mark.django_db
def test_secret_of_a_job_is_in_none_of_its_effects_payloads_answers_and_errors(browse):
    matter = scene.unknown()
    payload, other, errors = [
        json.dumps(value) for value in ({"to": SECRET, "ok": "fine"}, {"to": f"{SECRET}1"}, f"no {SECRET}")
    ]
    with build.unguarded(), connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_job SET input = %s", [json.dumps({"token": SECRET})])
        cursor.execute(
            "UPDATE jobs_effectslot SET payload = %s, conflict_payload = %s, response = %s",
            [payload, other, payload],
        )
        cursor.execute("UPDATE jobs_case SET kind = 'conflict'")
    matters.evidence(matter.case, body=payload)
    matters.evidence(matter.case, body=errors)
    pages = _shown(matter, browse("admin"))
    assert [SECRET in page for page in pages] == [False] * 4
    assert pages[1].count("fine") >= 3
