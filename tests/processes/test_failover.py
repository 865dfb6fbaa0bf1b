"""A standby that is promoted, while a worker of the old life goes on: docs/operations.md, step by step.

The primary and its standby are servers of their own. What leads to the primary is a link to its socket's
folder; after the failover it leads to the promoted one, as a name or an address would.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import OperationalError, connection, connections

from jobs import canon
from jobs.effect_kinds import EffectKind
from jobs.ledger import timeline
from jobs.models import EffectSlot, Job, Scheduler
from jobs.outcomes import Lease
from jobs.verbs.base import HOOKS
from jobs.verbs.effects import EffectRuntime
from jobs.verbs.gate import Ask
from jobs.vocabulary import JOB
from tests import pgtemp
from tests.processes.databases import Server
from tests.processes.installation import Installation
from tests.processes.warm import Warm

pytestmark = pytest.mark.skipif(
    not connection.features.has_select_for_update_skip_locked, reason="this database has no server"
)
CROWD, CHARGES = 20, 5
ADA = ("--as", "ada", "--reason", "failover")
ASK = Ask(
    EffectKind("proc.non_replayable", send=lambda request: None, replay="non_replayable", approval="never"),
    "charge",
    "null",
    canon.digest("null"),
    None,
)


class Pair:
    """A primary, its standby, and an installation whose address leads to the one in charge."""

    def __init__(
        self, primary: pgtemp.Server, standby: pgtemp.Server, made: Installation, link: Path
    ) -> None:
        self.primary, self.standby, self.made, self.link = primary, standby, made, link

    def on(self, server: pgtemp.Server, statement: str) -> list[Any]:
        """Run one statement on a server, as its administrator."""
        with psycopg.connect(server.url, autocommit=True) as admin:
            cursor = admin.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def until_caught_up(self) -> None:
        """Wait until the standby has all that the primary has written."""
        (written,) = self.on(self.primary, "SELECT pg_current_wal_insert_lsn()")[0]
        missing = f"SELECT pg_last_wal_replay_lsn() >= '{written}'"
        self.made.until(lambda: self.on(self.standby, missing)[0][0], "catching up")

    def cut(self) -> None:
        """End the replication: what is written from now on is on the primary only."""
        self.on(self.standby, "ALTER SYSTEM SET primary_conninfo = ''")
        self.on(self.standby, "SELECT pg_reload_conf()")
        receiving = "SELECT 1 FROM pg_stat_wal_receiver"
        self.made.until(lambda: not self.on(self.standby, receiving), "the end of the replication")

    def fail_over(self) -> None:
        """The primary is gone without a word; its standby takes over."""
        self.primary.kill()
        self.standby.promote()
        aside = self.link.with_name("aside")
        aside.symlink_to(self.standby.base)
        aside.rename(self.link)
        self.made.reconnect()


@contextmanager
def pair(folder: Path, warm: Warm, **settings: str) -> Iterator[Pair]:
    """Make both; nothing is taken down in order but the processes, for the servers go as a whole."""
    name = f"failover_{uuid.uuid4().hex[:12]}"
    with pgtemp.server(**settings) as primary, tempfile.TemporaryDirectory(dir="/tmp") as place:
        link = Path(place) / "db"
        link.symlink_to(primary.base)
        where = {"HOST": str(link), "PORT": "", "USER": "postgres", "PASSWORD": ""}
        ground = Server({**connections.databases["default"], **where})
        ground.create(name)
        connections.databases[name] = ground.settings(name)
        made = Installation(name, ground.url(name), folder, warm)
        try:
            call_command("migrate", database=name, verbosity=0)
            with pgtemp.standby(primary, **settings) as standby, made.kinds():
                try:
                    yield Pair(primary, standby, made, link)
                finally:
                    made.close()
        finally:
            connections[name].close()
            del connections[name], connections.databases[name]


@pytest.fixture
def _unblocked(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        yield


@pytest.mark.usefixtures("_unblocked")
def test_an_asynchronous_standby_refuses_the_old_life_until_a_raise_with_a_floor(
    tmp_path: Path, warm: Warm
) -> None:
    with pair(tmp_path, warm) as two:
        made, verbs = two.made, two.made.jobs
        effects = EffectRuntime(JOB, hooks=HOOKS, using=made.alias)
        scheduler = Scheduler.objects.using(made.alias)

        def claim(job_id: uuid.UUID) -> Lease:
            lease = verbs.claim_job(job_id, worker_id="host:1:old", epoch=scheduler.get().epoch)
            assert lease is not None
            return lease

        def send(lease: Lease) -> str:
            return effects.gate(lease, ASK, grant_id=uuid.uuid4().hex).word

        User.objects.db_manager(made.alias).create_superuser("ada")
        made.enqueue_many("proc.crowd", CROWD, gate=made.gate)
        charges = made.enqueue_many("proc.charge", CHARGES, queue="by.hand", policy="", invoice="")
        worker = made.start("--queues", "proc", "--concurrency", str(CROWD))
        made.until_traces(CROWD)
        kept = claim(charges[0])
        assert send(kept) == "GRANTED"
        two.until_caught_up()
        # A connection may be made before the promotion, and live on.
        follower = f"{made.alias}_standby"
        connections.databases[follower] = {**connections.databases[made.alias], "HOST": str(two.standby.base)}
        assert not timeline.moved(follower)
        two.cut()
        lost = claim(charges[1])
        assert send(lost) == "GRANTED"
        raised = verbs.raise_epoch(expected=1, actor="ada", reason="not replicated")
        unlucky = claim(charges[2])
        two.fail_over()

        # Epoch 1 and generation 1 are to be had again, and the slot of what was perhaps sent is gone.
        assert scheduler.get().epoch == raised - 1
        assert made.job(charges[1]).claim_generation == 0
        assert not EffectSlot.objects.using(made.alias).filter(job_id=charges[1]).exists()
        assert Job.objects.db_manager(follower).commit(kept, 1).reason == "TIMELINE"
        connections[follower].close()
        del connections[follower], connections.databases[follower]
        for lease in (kept, lost, unlucky):
            answers = verbs.commit(lease, 1), verbs.stage(lease, 1), verbs.renew(lease), verbs.release(lease)
            assert {answer.reason for answer in answers} == {"TIMELINE"}
            assert send(lease) == "REFUSED"
            assert ("commit", "TIMELINE") in made.refusals(uuid.UUID(lease.job_id))
        made.open_gate()
        made.until(
            scheduler.filter(claims_open=False, reason="timeline").exists,
            "the closing of claims by the worker",
        )
        crowd = Job.objects.using(made.alias).filter(kind="proc.crowd")
        assert not crowd.filter(status="succeeded").exists()

        # What docs/operations.md says.
        made.manage("epoch", "open-claims", *ADA, code=1)
        floor = ("--expected", "1", "--floor", str(raised))
        made.manage("epoch", "raise", *floor, "--close-claims", "--yes", *ADA)
        made.manage("drain", "--wait", "--timeout", "60", code=2)  # blocked: what was being sent is unknown
        made.manage("quarantine", "--non-replayable", "--dry-run", *ADA)
        made.manage("quarantine", "--non-replayable", *ADA)
        assert [made.job(job_id).hold_reason for job_id in charges] == ["quarantine"] * CHARGES
        assert not any(verbs.commit(lease, 1).landed for lease in (kept, lost, unlucky))
        made.manage("epoch", "open-claims", *ADA)
        verbs.unhold(charges[1], actor="ada", reason="the provider has nothing")
        again = claim(charges[1])
        assert (again.generation, again.worker_id) == (lost.generation, lost.worker_id)
        assert verbs.commit(lost._replace(epoch=again.epoch), 1).reason == "ATTEMPT"
        made.until(lambda: crowd.filter(status="succeeded").count() == CROWD, "the work's going on")
        assert worker.process.poll() is None, worker.said


@pytest.mark.usefixtures("_unblocked")
def test_of_what_a_synchronous_standby_acknowledged_nothing_is_lost(tmp_path: Path, warm: Warm) -> None:
    with pair(tmp_path, warm, synchronous_commit="on") as two:
        made, verbs = two.made, two.made.jobs
        two.on(two.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        two.on(two.primary, "SELECT pg_reload_conf()")
        synchronous = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        made.until(lambda: two.on(two.primary, synchronous), "the standby's being synchronous")
        enqueued: list[uuid.UUID] = []
        committed: list[Lease] = []

        def work() -> None:
            try:
                while True:
                    enqueued.append(made.enqueue("proc.trace"))
                    lease = verbs.claim_job(enqueued[-1], worker_id="host:1:a")
                    assert lease is not None
                    if verbs.commit(lease, 1).landed:
                        committed.append(lease)
            except OperationalError:
                pass
            finally:
                connections[made.alias].close()

        worker = threading.Thread(target=work)
        worker.start()
        made.until(lambda: len(committed) >= 30, "thirty commits")
        # The standby falls silent: whoever commits now is told nothing, and it is lost.
        (receiver,) = two.on(two.standby, "SELECT pid FROM pg_stat_wal_receiver")[0]
        os.kill(receiver, signal.SIGSTOP)
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        made.until(lambda: two.on(two.primary, waiting), "waiting for the standby")
        two.primary.kill()
        os.kill(receiver, signal.SIGCONT)
        worker.join(60)
        assert not worker.is_alive()
        two.fail_over()
        assert set(enqueued) == set(Job.objects.using(made.alias).values_list("id", flat=True)) & set(
            enqueued
        )
        for lease in committed:
            job = made.job(uuid.UUID(lease.job_id))
            assert (job.status, job.result_commit_id) == ("succeeded", uuid.UUID(lease.attempt_id))
