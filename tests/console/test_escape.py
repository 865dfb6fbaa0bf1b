"""Stored markup: whatever a job, a worker or a person wrote stays text on every page."""

import html
import json
import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils.http import urlencode

from jobs.ledger import settle
from jobs.ledger import worker as worker_rows
from jobs.ledger.clock import clock
from jobs.ledger.session import transact
from jobs.models import Attempt, Change, FenceRefusal, Job, Worker
from jobs.operations import cases, casework, rulings, views
from jobs.vocabulary import JOB
from tests import build
from tests.console import matters

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]

EVIL = [
    '<script>alert(1)</script>"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)></pre></textarea><b>x{{ 7|add:7 }}{% now 'Y' %}",
    "\u202ejavascript:alert(1)</title><script src=//evil.example></script>&lt;b&gt;&#60;i&#62;",
]
TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
TAGS = re.compile(r"<(script|img|svg|b|i|iframe)\b[^>]*(alert|onerror|onload|evil)", re.IGNORECASE)


def spread(evil):
    """Write the text into every field that people or workers may write into; returns the job's id."""
    worker = f"{evil}:1:a"[:200]
    arguments = {"plain": evil, evil: [evil, {"deep": {evil: evil}}]}
    job_id = Job.objects.enqueue(
        build.KIND,
        arguments,
        options=build_options(evil),
        now=build.T0,
    ).job_id

    def write(session):
        worker_rows.register(
            session,
            id=worker,
            host=evil[:100],
            pid=1,
            boot_id="",
            pid_namespace="",
            pid_started=None,
            version=evil[:40],
            queues=[evil],
            kinds=[evil] * 5,
            concurrency=1,
            epoch=1,
        )

    ledger(write)
    lease = build.claim(job_id, worker=worker, now=build.at(1))
    note = {"attempt_id": lease.attempt_id, "beats": 1, "progress_done": 1, "progress_total": 2}
    ledger(
        lambda s: settle.note_attempts(s, [note | {"progress_note": evil[:200], "log": f"{evil}\n{evil}"}])
    )
    from jobs import admission

    ending = admission.failure(
        lease, "RUNTIME_HANDLER_EXCEPTION", evil, retry_after=0.0, traceback=f"{evil}\n{evil}"
    )
    Job.objects.runtime.end([ending], now=build.at(2))
    Job.objects.commit(lease, {"late": evil}, now=build.at(3))
    again = build.claim(job_id, worker=worker, now=build.at(4))
    Job.objects.uncertain(again, evil, reference=evil[:100], now=build.at(5))
    Job.objects.cancel(job_id, actor=evil[:150], reason=evil, now=build.at(6))
    done = build.running(now=build.at(7), label=evil)
    Job.objects.commit(done, {"result": evil, evil: evil}, now=build.at(8))
    Job.objects.pause_queue("mail", actor=evil[:150], reason=evil, now=build.at(9))
    Job.objects.close_claims(actor=evil[:150], reason=evil, now=build.at(10))
    return job_id, build.id_of(done)


def entangle(evil, client):
    """Write the text into everything that is said about a case, and into a saved view; returns the case."""
    case = matters.open_case(label=evil, target=evil, etag=evil, payload=json.dumps({evil: evil}), slot=evil)
    like = matters.open_case(label=evil, amount=None)
    matters.alter(case, cause=evil[:80], owner=evil, owned_until=clock() + timedelta(minutes=5))
    matters.evidence(case, body=evil, reference=evil, actor=evil)
    matters.evidence(case, source="report", outcome="unknown", body=f"{evil}: {evil}")
    writer = client.get(reverse("admin:preferences")).wsgi_request.user
    casework.comment(case.pk, evil, actor=writer)
    seen = cases.look(like.pk)
    rulings.rule(
        like.pk,
        "happened",
        actor=writer,
        reason_code="other",
        reason=evil,
        seen_version=seen.case.version,
        snapshot=seen.snapshot,
        reference=evil,
    )
    views.keep("inbox", evil[:60], urlencode({"label": evil}), actor=writer, shared=True)
    return case


def build_options(evil):
    from jobs.handlers import Options

    tag = "".join(sign for sign in evil if sign.isprintable() and not sign.isspace() and sign != ",")[:50]
    keys = {"unique_key": evil, "concurrency_key": evil}
    return Options(label=evil, enqueued_by=evil[:150], max_attempts=5, tags=[tag], **keys)


def ledger(work):
    return transact(work, using="default", vocabulary=JOB, now=build.T0, durable=False, fenced=False)


@pytest.mark.parametrize("evil", EVIL)
def test_what_was_stored_stays_text(browse, evil):
    client = browse("admin")
    case = entangle(evil, client)
    job_id, done = spread(evil)
    revisable = build.enqueue({"plain": evil, evil: evil}, label=evil)
    urls = [
        *(
            reverse(f"admin:{name}")
            for name in ("index", "jobs", "queues", "workers", "refusals", "scheduler", "drain", "audit")
        ),
        *(reverse(f"admin:{name}") for name in ("epoch-raise", "claims-open", "claims-close")),
        *(reverse(f"admin:job-{act}", args=[job_id]) for act in ("force-cancel", "hold", "retry")),
        reverse("admin:job-revise", args=[revisable]),
        *(f"{reverse(f'admin:queue-{act}')}?{urlencode({'queue': 'mail'})}" for act in ("pause", "resume")),
        f"{reverse('admin:worker-fence')}?{urlencode({'worker': Worker.objects.get().id})}",
        reverse("admin:job", args=[job_id]),
        reverse("admin:job", args=[done]),
        reverse("admin:inbox"),
        reverse("admin:case", args=[case.pk]),
        reverse("admin:casefile", args=[case.pk]),
        reverse("admin:handover"),
        reverse("admin:search") + "?" + urlencode({"q": evil}),
        *(
            reverse(f"admin:jobs_{name}_changelist")
            for name in ("attempt", "worker", "change", "fencerefusal", "queue")
        ),
        reverse(
            "admin:jobs_attempt_change", args=[Attempt.objects.filter(job_id=job_id).latest("generation").pk]
        ),
        reverse("admin:jobs_change_change", args=[Change.objects.exclude(actor="").latest("id").pk]),
        reverse("admin:jobs_fencerefusal_change", args=[FenceRefusal.objects.latest("id").pk]),
    ]
    seen = 0
    for url in urls:
        answer = client.get(url)
        page = answer.content.decode()
        assert answer.status_code == 200, url
        assert not TAGS.search(page), url
        assert "14" + "2026" not in page
        assert not TURNS.search(page), url
        shown = html.escape(evil[:20]).replace("\u202e", "\\u202e")
        seen += shown.replace("&#x27;", "&#39;") in page or shown in page
    assert seen >= 6
    assert Worker.objects.count() == 1


def test_marks_that_turn_the_writing_round_turn_no_amount_and_are_not_lost_where_json_is_edited(browse):
    turned = "Invoice \u202e7 \u2066ecilA\u2069"
    case = matters.open_case(label=turned, target=turned, amount="480.00", currency="EUR")
    page = browse("admin").get(reverse("admin:case", args=[case.pk])).content.decode()
    assert not TURNS.search(page)
    assert "Invoice \\u202e7 \\u2066ecilA\\u2069, 480.00 EUR" in page
    job_id = build.enqueue({"note": turned})
    form = browse("admin").get(reverse("admin:job-revise", args=[job_id])).content.decode()
    edited = re.search(r"<textarea[^>]*name=\"arguments\"[^>]*>(.*?)</textarea>", form, re.DOTALL)
    assert edited
    assert json.loads(html.unescape(edited[1])) == {"note": turned}


@pytest.mark.parametrize("evil", EVIL)
def test_what_an_address_holds_stays_text(viewer, evil):
    for name in ("index", "jobs", "refusals", "inbox", "search"):
        for key in ("q", "kind", "range", "label", evil):
            page = viewer.get(reverse(f"admin:{name}"), {key: evil}).content.decode()
            assert not TAGS.search(page)
    assert not TAGS.search(viewer.get("/" + evil.replace("\u202e", "") + "/").content.decode())


def test_runbook_is_a_link_only_where_it_is_an_address_of_the_web():
    from console.templatetags.console import is_link

    assert is_link("https://runbooks.example/x")
    assert not is_link("javascript:alert(1)//https://")
    assert not is_link(" https://x")
    assert not is_link("data:text/html,x")


def test_handler_of_a_kind_is_never_called_by_a_page(viewer):
    """A template calls whatever can be called: a handler in its context would run the job."""
    from jobs import handlers

    calls = []

    @handlers.job("tests.called", owner="somebody", runbook="https://runbooks.example/x")
    def called(**_arguments):
        calls.append(1)

    page = viewer.get(reverse("admin:job", args=[called.enqueue().job_id])).content.decode()
    assert "somebody" in page
    assert 'href="https://runbooks.example/x"' in page
    assert calls == []
