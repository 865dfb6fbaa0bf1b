"""A small model of the whole: every job's columns, moved on by the oracle alone and never read back.

Each rule does one verb on the database and foretells it from the model; afterwards every column of every job,
attempt and slot must be the model's. What only the database can know (new ids) the verb's answer tells.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from jobs import canon
from jobs.handlers import Options
from jobs.models import Attempt, EffectSlot, Job
from jobs.outcomes import Lease, Refused
from jobs.status import WaitReason
from tests import build
from tests.build import KIND, QUEUE, T0
from tests.matrix import contract, people
from tests.matrix.contract import Wish
from tests.matrix.world import Columns, Expected, World, all_rows

V = Job.objects
BY: dict[str, Any] = {"actor": "ann", "reason": "because"}
WHO = {"by": "ann", "why": "because"}
CODE = "RUNTIME_HANDLER_EXCEPTION"
LONG = timedelta(days=1)


@dataclass
class Model:
    """What there is."""

    now: datetime = T0
    epoch: int = 1
    claims_open: bool = True
    rows: dict[uuid.UUID, Columns] = field(default_factory=dict)
    attempts: dict[uuid.UUID, Columns] = field(default_factory=dict)
    slots: dict[tuple[uuid.UUID, str], Columns] = field(default_factory=dict)

    def world(self, job_id: uuid.UUID, token: Lease | None = None) -> World:
        """Return what a verb on one job finds."""
        return World(
            token=token or build.nobodys(job_id),
            now=self.now,
            row=dict(self.rows[job_id]),
            attempts={k: dict(a) for k, a in self.attempts.items() if a["job_id"] == job_id},
            slots=[dict(s) for (owner, _), s in self.slots.items() if owner == job_id],
            epoch=self.epoch,
            claims_open=self.claims_open,
            changes=0,
            refusals=[],
        )

    def apply(self, job_id: uuid.UUID, expected: Expected, lease: Lease | None = None) -> None:
        """Move the model on by what was foretold."""
        row = self.rows[job_id]
        if row["attempt_id"] is not None:
            self.attempts[row["attempt_id"]].update(expected.attempt)
        for name, status in expected.slots.items():
            self.slots.setdefault((job_id, name), _implicit(name)).update(status=status)
        row.update(expected.row)
        if expected.claims:
            assert lease is not None
            row["attempt_id"] = uuid.UUID(lease.attempt_id)
            self.attempts[row["attempt_id"]] = {
                "id": row["attempt_id"],
                "job_id": job_id,
                "generation": row["claim_generation"],
                "status": "running",
                "started_at": self.now,
                "staged_at": None,
                "finished_at": None,
                "result": None,
                "result_digest": None,
                "error_code": "",
                "error_message": "",
            }


def _implicit(name: str) -> Columns:
    return {
        "slot": name,
        "replay": "non_replayable",
        "inquirable": False,
        "in_conflict": False,
        "key_valid_until": None,
    }


class Machine(RuleBasedStateMachine):
    """Everything that workers, people and the clock may do, in any order."""

    jobs: Bundle[uuid.UUID] = Bundle("jobs")
    leases: Bundle[Lease] = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.ids: list[uuid.UUID] = []
        self.generations: dict[uuid.UUID, int] = {}
        self.undo = ExitStack()
        self.undo.enter_context(build.undone())

    def teardown(self) -> None:
        self.undo.close()

    # -- the clock and the cluster ------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.000001, 1, 7, 30, 59.999999, 60, 61, 3600, -0.000001, -5]))
    def time_passes_or_goes_back(self, seconds: float) -> None:
        self.model.now += timedelta(seconds=seconds)

    @rule()
    def raise_epoch(self) -> None:
        self.model.epoch = V.raise_epoch(expected=self.model.epoch, **BY, now=self.model.now)

    @rule(open_=st.booleans())
    def open_or_close_claims(self, open_: bool) -> None:
        verb = V.open_claims if open_ else V.close_claims
        assert verb(**BY, now=self.model.now) is (open_ is not self.model.claims_open)
        self.model.claims_open = open_

    # -- enqueue ------------------------------------------------------------------------------------

    @rule(
        target=jobs,
        priority=st.sampled_from([-1, 0, 0, 5]),
        delay=st.sampled_from([0, 0, 0, 20]),
        deadline=st.sampled_from([None, None, 100]),
        max_attempts=st.sampled_from([1, 2, 20]),
    )
    def enqueue(self, priority: int, delay: float, deadline: float | None, max_attempts: int) -> uuid.UUID:
        options = Options(priority=priority, delay=delay, deadline=deadline, max_attempts=max_attempts)
        job_id = V.enqueue(KIND, {"n": len(self.ids)}, options=options, now=self.model.now).job_id
        self.ids.append(job_id)
        row = build.row(job_id)  # what a new row says is held by tests/ledger/test_enqueue.py
        due = self.model.now + timedelta(seconds=delay)
        assert (row["status"], row["priority"], row["next_attempt_at"]) == ("pending", priority, due)
        self.model.rows[job_id] = row
        return job_id

    # -- claims -------------------------------------------------------------------------------------

    @rule(target=leases, worker=st.sampled_from(["w1", "w2"]))
    def claim(self, worker: str) -> Any:
        worlds = {job_id: self.model.world(job_id) for job_id in self.ids}
        free = [job_id for job_id, w in worlds.items() if people.is_due(w) and people.may_claim(w)]
        taken = V.claim(worker_id=worker, queues=[QUEUE], kinds=[KIND], now=self.model.now)
        for job_id, w in worlds.items():
            self.model.apply(job_id, Expected(None, people.promoted(w)))
        if not free:
            assert taken == []
            return multiple()
        first = min(free, key=self._order)
        (lease,) = taken
        assert build.id_of(lease) == first
        return self._claimed(lease, people.claimed(worlds[first]), worker)

    def _order(self, job_id: uuid.UUID) -> Any:
        row = self.model.rows[job_id]
        return -row["priority"], row["next_attempt_at"], job_id.hex

    @rule(target=leases, job_id=jobs, worker=st.sampled_from(["w1", "w2"]))
    def claim_job(self, job_id: uuid.UUID, worker: str) -> Any:
        expected = people.claim_job(self.model.world(job_id))
        lease = V.claim_job(job_id, worker_id=worker, now=self.model.now)
        assert (lease is not None) is expected.claims
        if lease is None:
            self.model.apply(job_id, expected)
            return multiple()
        return self._claimed(lease, expected, worker)

    def _claimed(self, lease: Lease, expected: Expected, worker: str) -> Lease:
        expected.row["worker_id"] = worker
        self.model.apply(build.id_of(lease), expected, lease)
        row = self.model.rows[build.id_of(lease)]
        assert (lease.generation, lease.epoch) == (row["claim_generation"], self.model.epoch)
        assert lease.lease_expires_at == row["lease_expires_at"]
        return lease

    # -- the holder, also one who has long been superseded ------------------------------------------------

    @rule(lease=leases)
    def renew(self, lease: Lease) -> None:
        expected = contract.renew(self._seen_by(lease), ttl=lease.ttl_seconds)
        self._holds(lease, expected, V.renew(lease, now=self.model.now))

    @rule(lease=leases, value=st.sampled_from([1, 2]))
    def stage(self, lease: Lease, value: int) -> None:
        expected = contract.stage(self._seen_by(lease), text=str(value), digest=canon.digest(str(value)))
        self._holds(lease, expected, V.stage(lease, value, now=self.model.now))

    @rule(lease=leases, value=st.sampled_from([1, 2]), staged=st.booleans())
    def commit(self, lease: Lease, value: int, staged: bool) -> None:
        text, digest = str(value), canon.digest(str(value))
        expected = contract.commit(self._seen_by(lease), text=None if staged else text, digest=digest)
        if staged:
            self._holds(lease, expected, V.commit(lease, staged_digest=digest, now=self.model.now))
        else:
            self._holds(lease, expected, V.commit(lease, value, now=self.model.now))

    @rule(lease=leases, after=st.sampled_from([0, 10]))
    def fail_and_retry(self, lease: Lease, after: float) -> None:
        wish = Wish("fail", "pending", True, code=CODE, spent_code=CODE, delay=after, at_once=not after)
        self._ends(lease, wish, lambda: V.fail(lease, CODE, retry_after=after, now=self.model.now))

    @rule(lease=leases)
    def fail(self, lease: Lease) -> None:
        wish = Wish("fail", "failed", code="HANDLER_CONTENT_FAILED")
        self._ends(lease, wish, lambda: V.fail(lease, "HANDLER_CONTENT_FAILED", now=self.model.now))

    @rule(lease=leases)
    def release(self, lease: Lease) -> None:
        wish = Wish("release", "pending", excused=True)
        self._ends(lease, wish, lambda: V.release(lease, now=self.model.now))

    @rule(lease=leases)
    def wait(self, lease: Lease) -> None:
        wish = Wish("wait", "waiting", excused=True, wait_reason="timer", delay=15, at_once=False)
        self._ends(lease, wish, lambda: V.wait(lease, WaitReason.TIMER, seconds=15, now=self.model.now))

    @rule(lease=leases)
    def wait_for_approval(self, lease: Lease) -> None:
        wish = Wish("wait", "waiting", excused=True, wait_reason="approval", delay=None)
        self._ends(lease, wish, lambda: V.wait(lease, WaitReason.APPROVAL, now=self.model.now))

    @rule(lease=leases)
    def skip(self, lease: Lease) -> None:
        wish = Wish("skip", "skipped", code="NOTHING_TO_DO")
        self._ends(lease, wish, lambda: V.skip(lease, "NOTHING_TO_DO", now=self.model.now))

    @rule(lease=leases)
    def uncertain(self, lease: Lease) -> None:
        wish = Wish("uncertain", "uncertain", message="no answer")
        self._ends(lease, wish, lambda: V.uncertain(lease, "no answer", now=self.model.now))

    @rule(lease=leases)
    def acknowledge_cancel(self, lease: Lease) -> None:
        wish = Wish("acknowledge_cancel", "cancelled", code="JOB_CANCELLED")
        self._ends(lease, wish, lambda: V.acknowledge_cancel(lease, now=self.model.now))

    @rule(target=leases, lease=consumes(leases))
    def learn_of_the_cancel(self, lease: Lease) -> Lease:
        """The worker renews and takes over the number it is told."""
        expected = contract.renew(self._seen_by(lease), ttl=lease.ttl_seconds)
        outcome = V.renew(lease, now=self.model.now)
        self._holds(lease, expected, outcome)
        number = outcome.cancel_generation
        return lease if number is None else lease.told_cancel(number)

    def _seen_by(self, lease: Lease) -> World:
        return self.model.world(build.id_of(lease), lease)

    def _ends(self, lease: Lease, wish: Wish, verb: Any) -> None:
        expected = contract.end(self._seen_by(lease), wish)
        self._holds(lease, expected, verb())

    def _holds(self, lease: Lease, expected: Expected, answer: Any) -> None:
        assert answer == expected.answer
        self.model.apply(build.id_of(lease), expected)

    # -- recovery and people ------------------------------------------------------------------------------

    @rule()
    def recover(self) -> None:
        expected = {job_id: people.recover(self.model.world(job_id)) for job_id in self.ids}
        ended = V.recover(now=self.model.now)
        answers = sorted(status for e in expected.values() for status in e.answer)
        assert sorted(e.status.value for e in ended) == answers
        for job_id, foretold in expected.items():
            self.model.apply(job_id, foretold)

    @rule(job_id=jobs)
    def cancel(self, job_id: uuid.UUID) -> None:
        self._asks(
            job_id,
            people.cancel(self.model.world(job_id), **WHO),
            lambda: V.cancel(job_id, **BY, now=self.model.now),
        )

    @rule(job_id=jobs, off=st.sampled_from([0, 0, 0, 1]))
    def force_cancel(self, job_id: uuid.UUID, off: int) -> None:
        seen = self.model.rows[job_id]["state_version"] - off
        self._asks(
            job_id,
            people.force_cancel(self.model.world(job_id), seen=seen, **WHO),
            lambda: V.force_cancel(job_id, state_version=seen, **BY, now=self.model.now),
        )

    @rule(job_id=jobs)
    def retry(self, job_id: uuid.UUID) -> None:
        seen = self.model.rows[job_id]["state_version"]
        self._asks(
            job_id,
            people.retry(self.model.world(job_id), seen=seen),
            lambda: V.retry(job_id, state_version=seen, **BY, now=self.model.now),
        )

    @rule(job_id=jobs, value=st.integers(0, 9))
    def revise(self, job_id: uuid.UUID, value: int) -> None:
        seen, text = self.model.rows[job_id]["state_version"], f'{{"x":{value}}}'
        self._asks(
            job_id,
            people.revise(self.model.world(job_id), seen=seen, text=text, digest=canon.digest(text)),
            lambda: V.revise(job_id, {"x": value}, state_version=seen, **BY, now=self.model.now),
        )

    @rule(job_id=jobs)
    def hold(self, job_id: uuid.UUID) -> None:
        expected = people.hold(self.model.world(job_id))
        self._asks(job_id, expected, lambda: V.hold(job_id, **BY, now=self.model.now))

    @rule(job_id=jobs)
    def unhold(self, job_id: uuid.UUID) -> None:
        expected = people.unhold(self.model.world(job_id))
        self._asks(job_id, expected, lambda: V.unhold(job_id, **BY, now=self.model.now))

    def _asks(self, job_id: uuid.UUID, expected: Expected, verb: Any) -> None:
        try:
            answer = verb()
        except Refused as refusal:
            answer = ("refused", refusal.code)
        assert answer == expected.answer
        self.model.apply(job_id, expected)

    # -- after each step ------------------------------------------------------------------------------

    @invariant()
    def the_database_says_what_the_model_says(self) -> None:
        found = {row["id"]: row for row in all_rows(Job)}
        assert found.keys() == self.model.rows.keys()
        for job_id, row in found.items():
            wanted = self.model.rows[job_id]
            assert row == wanted, {k: (v, wanted[k]) for k, v in row.items() if v != wanted[k]}
        attempts = {row["id"]: row for row in all_rows(Attempt)}
        assert attempts.keys() == self.model.attempts.keys()
        for key, wanted in self.model.attempts.items():
            assert {k: attempts[key][k] for k in wanted} == wanted
        slots = {(row["job_id"], row["slot"]): row["status"] for row in all_rows(EffectSlot)}
        assert slots == {key: slot["status"] for key, slot in self.model.slots.items()}

    @invariant()
    def the_invariants_hold_whatever_the_model_says(self) -> None:
        runs = {row["attempt_id"]: row for row in all_rows(Job) if row["status"] == "running"}
        attempts = all_rows(Attempt)
        assert {a["id"] for a in attempts if a["status"] == "running"} == set(runs)
        committed = [a["job_id"] for a in attempts if a["status"] == "committed"]
        assert len(committed) == len(set(committed))
        for row in all_rows(Job):
            assert (row["finished_at"] is not None) == (row["status"] in contract.TERMINAL)
            assert row["claim_generation"] >= self.generations.get(row["id"], 0)
            if row["status"] in ("pending", "waiting"):
                assert row["attempt_count"] - row["attempts_excused"] < row["max_attempts"]
            self.generations[row["id"]] = row["claim_generation"]
