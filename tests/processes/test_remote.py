"""A remote worker is killed, stopped and shut out like a local one; the provider's ledger is the judge.

Everything is real: gunicorn, the example worker over HTTP, the payment service. One story, because each of
them takes a second to start.
"""

from __future__ import annotations

import shutil
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from interlock_client import Client, Fenced, Problem
from jobs.models import ApiToken, Attempt, EffectSlot, Evidence
from tests.processes.installation import Installation, committed_once
from tests.processes.warm import ROOT
from tests.processes.web import serving
from tests.provider import Provider

SOURCE = "sources/minutes/release-notes.md"
LEASE = 3


def test_a_remote_worker_works_dies_sleeps_and_is_shut_out(
    installation: Installation, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    with serving(installation) as web, Provider.running(ledger) as provider:
        token = web.token()
        with web.client(token) as client:
            _works(installation, web, provider, client, token)
            _dies(installation, web, provider, client, token)
            _sleeps(installation, web, provider, client, token)
            _is_shut_out(installation, web, provider, client, token)


def _works(installation: Installation, web: Any, provider: Provider, client: Client, token: str):
    """Both kinds are run; the file that was uploaded is named by the job's one result."""
    (web.media / SOURCE).parent.mkdir(parents=True)
    shutil.copy(ROOT / "demo/files/release-notes.md", web.media / SOURCE)
    document = client.enqueue("documents.convert", {"source": SOURCE, "to": "html"})
    bill = _charge(client, "INV-1")
    worker = web.start_worker(token, provider.url)
    done = client.wait(document.id)
    assert (done.status, client.wait(bill).status) == ("succeeded", "succeeded"), worker.said
    attempt = installation.attempts(done.id)[0]
    assert done.result["file"] == f"attempts/{attempt.pk.hex}/release-notes.html"
    assert b"<h1" in (web.media / done.result["file"]).read_bytes()
    assert attempt.worker_id.endswith("@token-1")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0, worker.said


def _dies(installation: Installation, web: Any, provider: Provider, client: Client, token: str):
    """Killed after the provider has acted: the next one takes over, asks, and charges nothing."""
    victim, bill = _held_up(installation, web, provider, client, token, "INV-2")
    victim.signal(signal.SIGKILL)
    victim.wait()
    installation.lengthen(bill)
    survivor = web.start_worker(token, provider.url)
    assert client.wait(bill).status == "succeeded", survivor.said
    attempts = installation.attempts(bill)
    assert [a.status for a in attempts] == ["lost", "committed"]
    assert committed_once(installation.job(bill), attempts)
    provider.lift()
    survivor.signal(signal.SIGTERM)
    assert survivor.wait() == 0, survivor.said


def _sleeps(installation: Installation, web: Any, provider: Provider, client: Client, token: str):
    """Stopped beyond its lease and woken: what it says late is kept, and its commit is refused."""
    sleeper, bill = _held_up(installation, web, provider, client, token, "INV-3")
    sleeper.signal(signal.SIGSTOP)
    installation.lengthen(bill)
    survivor = web.start_worker(token, provider.url)
    assert client.wait(bill).status == "succeeded", survivor.said
    provider.lift()
    sleeper.signal(signal.SIGTERM)
    sleeper.signal(signal.SIGCONT)
    assert sleeper.wait() == 0, sleeper.said
    assert "lease lost" in sleeper.said
    attempts = installation.attempts(bill)
    assert committed_once(installation.job(bill), attempts)
    reports = Evidence.objects.using(installation.alias).filter(source="report", attempt_id=attempts[0].pk)
    assert reports.count() == 1, sleeper.said
    with pytest.raises(Fenced) as refused:
        client.transport.send(
            "POST",
            f"leases/{attempts[0].pk}/commit",
            {"lease": _lease(installation, attempts[0]), "result": 1},
            repeatable=True,
        )
    assert refused.value.outcome == "not_started"
    survivor.signal(signal.SIGTERM)
    assert survivor.wait() == 0, survivor.said
    done = provider.ledger()["charges"]
    assert sorted(charge["invoice"] for charge in done) == ["INV-1", "INV-2", "INV-3"]


def _is_shut_out(
    installation: Installation, web: Any, provider: Provider, client: Client, token: str
) -> None:
    """With its token revoked a waiting worker ends by itself, and so does every request."""
    worker = web.start_worker(token, provider.url)
    alias = installation.alias
    installation.until(
        lambda: EffectSlot.objects.using(alias).exists() and "worker " in worker.said, "the worker's start"
    )
    bill = _charge(client, "INV-4")
    assert client.wait(bill).status == "succeeded", worker.said
    ApiToken.objects.using(alias).update(revoked_at=timezone.now())
    with pytest.raises(Problem) as refused:
        client.get(bill)
    assert refused.value.status == 401
    assert worker.wait() == 1, worker.said


def _charge(client: Client, invoice: str) -> uuid.UUID:
    arguments = {"invoice": invoice, "account": "acme", "amount": "12.50", "currency": "EUR"}
    return client.enqueue("billing.charge", arguments, key=invoice).id


def _held_up(
    installation: Installation, web: Any, provider: Provider, client: Client, token: str, invoice: str
) -> tuple[Any, uuid.UUID]:
    """Return a worker that the provider has charged for and does not answer, and its job of a short lease."""
    provider.fault("delay_answer", seconds=3600.0, invoice=invoice)
    struck = provider.call("GET", "faults").json["strikes"]
    bill = _charge(client, invoice)
    with connections[installation.alias].cursor() as cursor:
        cursor.execute(f"UPDATE jobs_job SET lease_seconds = {LEASE} WHERE status = 'pending'")
    worker = web.start_worker(token, provider.url)
    provider.struck(struck + 1)
    return worker, bill


def _lease(installation: Installation, attempt: Attempt) -> dict[str, Any]:
    job = installation.job(attempt.job_id)
    return {
        "job_id": str(job.pk),
        "attempt_id": str(attempt.pk),
        "claim_generation": attempt.generation,
        "scheduler_epoch": attempt.scheduler_epoch,
        "worker_id": attempt.worker_id,
        "cancel_generation": 0,
        "revision": 1,
        "input_digest": job.input_digest,
    }
