"""A server that refuses every write for a while, as a demoted one does: nothing that was done is lost."""

from __future__ import annotations

import json
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from jobs.models import EffectSlot
from tests.processes.databases import Server
from tests.processes.installation import Installation
from tests.processes.web import serving
from tests.provider import Provider

pytestmark = pytest.mark.skipif(
    not connection.features.has_select_for_update_skip_locked, reason="this database has no server"
)


@contextmanager
def read_only(installation: Installation) -> Iterator[None]:
    """Have every new connection be refused its writes, and cut those that there are."""
    server, name = Server(connections.databases[installation.alias]), installation.alias
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    server.run(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    installation.reconnect()
    server.run(cut, name)
    try:
        yield
    finally:
        server.run(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
        installation.reconnect()


def test_a_result_waits_until_it_can_be_written(installation: Installation) -> None:
    job_id = installation.enqueue("proc.gate", gate=installation.gate)
    worker = installation.start()
    installation.until_begun(job_id)
    with read_only(installation):
        installation.open_gate()
        installation.until(lambda: len(installation.traces(job_id)) == 2, "the handler's end")
        installation.until(
            lambda: re.search("settle.*read-only|ending refused", worker.said), "the refusal of its result"
        )
    installation.until_succeeded(job_id)
    assert [a.generation for a in installation.attempts(job_id)] == [1]
    assert "Traceback" not in worker.said
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0, worker.said


def test_what_a_provider_did_is_written_down_as_soon_as_it_can_be(
    installation: Installation, tmp_path: Path
) -> None:
    with Provider.running(tmp_path) as provider:
        job_id = installation.enqueue("proc.charge", policy="non_replayable", invoice="7")
        where: dict[str, Any] = {
            "DEMO_PROVIDER_URL": provider.url,
            "INTERLOCK_SPOOL": str(tmp_path / "spool"),
        }
        worker = installation.start(failpoints="report.sending=stop", environment=where)
        installation.until_stopped(worker)
        with read_only(installation):
            worker.signal(signal.SIGCONT)
            installation.until(lambda: "read-only transaction" in worker.said, "the refusal of a write")
        installation.until_succeeded(job_id)
        assert EffectSlot.objects.using(installation.alias).get(job_id=job_id).status == "committed"
        assert len(provider.ledger()["charges"]) == 1


def test_the_web_server_writes_again_as_soon_as_the_database_does(installation: Installation) -> None:
    def enqueue() -> int:
        body = json.dumps({"kind": "documents.convert", "arguments": {"source": "a"}}).encode()
        return post(f"{web.url}/jobs", token, body)

    with serving(installation) as web:
        token = web.token()
        assert enqueue() == 201
        with read_only(installation):
            # The first finds its connection cut.
            assert [enqueue() for _ in range(20)] == [503] * 20
        installation.until(lambda: {enqueue() for _ in range(20)} == {201}, "twenty jobs in a row", 20)


def post(url: str, token: str, body: bytes) -> int:
    """Send a body and return the answer's status."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
