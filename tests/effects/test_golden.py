"""The golden traces that need an effect slot: what a crash leaves, by replay policy."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection

from jobs.drills.moment import instant, seconds
from jobs.effect_kinds import EffectKind
from jobs.handlers import Options, job
from jobs.inquiry import inquire
from jobs.models import Case, EffectSlot, Job, Proposal
from jobs.operations import cases, rulings
from jobs.outcomes import Ending, Lease
from jobs.status import WaitReason
from jobs.verbs.base import HOOKS
from jobs.verbs.effects import EffectRuntime
from jobs.verbs.gate import Ask, Word, ask_of
from jobs.vocabulary import JOB
from tests.effects.outside import Outside

TRACES = json.loads((Path(__file__).parents[1] / "golden/job_state_traces.json").read_text("utf-8"))
WITH_SLOTS = [trace for trace in TRACES["scenarios"] if "replay" in trace]
WORDS = {"succeeded": "done"}


class Course:
    """One trace's workers, played on `Job` with an effect slot."""

    def __init__(self, outside: Outside, replay: str) -> None:
        self.outside = outside
        self.kind: EffectKind = outside.kind(replay, inquiry=replay == "queryable")
        self.effects = EffectRuntime(JOB, hooks=HOOKS)
        self.ask: Ask = ask_of(self.kind.name, "charge", outside.payload, limit=10_000, depth=8)
        self.leases: dict[str, Lease] = {}
        self.job_id = uuid.UUID(int=0)

    def perform(self, action: str, t: float) -> Any:
        """Do what a step of the trace says and return what its actor was told."""
        now, actor = instant(t), action.partition("claim ")[2] or action[:1]
        match action.split(maxsplit=1):
            case ["enqueue"]:
                self.job_id = Job.objects.enqueue(
                    "drill.trace", {}, options=Options(enqueued_by="requester"), now=now
                ).job_id
            case ["claim", _]:
                lease = Job.objects.claim_job(self.job_id, worker_id=actor, now=now)
                self.leases |= {actor: lease} if lease else {}
                return lease.generation if lease else None
            case ["finish", _]:
                return Job.objects.commit(self.leases[action.split()[1]], now=now).landed
            case ["a", "person approves"]:
                return self.approve(now)
            case [_, "exits; reopen the database"]:
                connection.close()
            case [_, "prepares; approval is asked"]:
                gate = self.effects.gate(self.leases[actor], self.ask, grant_id=uuid.uuid4().hex, now=now)
                assert gate.word is Word.APPROVAL
                assert gate.slot is not None
                wait = Ending.wait(
                    self.leases[actor], WaitReason.APPROVAL, seconds=None, effect_id=gate.slot.id
                )
                (outcome,) = Job.objects.runtime.end([wait], now=now)
                return outcome.status
            case [_, "granted, acts outside; response lost"]:
                gate = self.effects.gate(self.leases[actor], self.ask, grant_id=uuid.uuid4().hex, now=now)
                assert gate.word is Word.GRANTED
                assert gate.slot is not None
                with pytest.raises(TimeoutError):
                    self.outside.charge_silently(gate_request(gate.slot))
                return "timeout"
            case [_, "inquires: found"]:
                slot_id = EffectSlot.objects.get().id
                return "found" if inquire(self.effects, slot_id, self.kind) == "committed" else "not found"
            case _:
                pytest.fail(f"no such action: {action}")
        return None

    def approve(self, now: Any) -> bool:
        person = get_user_model().objects.create(username="approver")
        person.user_permissions.add(Permission.objects.get(codename="approve_ruling"))
        view = cases.look(Case.objects.get().pk, now=now)
        rulings.approve(
            Proposal.objects.get().pk, actor=person, snapshot=view.snapshot, reason="checked", now=now
        )
        return True


def gate_request(slot: Any) -> Any:
    from jobs.effect_kinds import Request

    return Request(key=slot.id, payload=json.loads(slot.payload))


@pytest.mark.parametrize("trace", WITH_SLOTS, ids=lambda trace: trace["name"])
def test_a_crash_with_a_slot_leaves_every_golden_value(trace: dict[str, Any], outside: Outside) -> None:
    def nothing() -> None: ...

    nothing.__qualname__ = f"trace-{trace['name']}"
    job("drill.trace", lease=30)(nothing)
    course = Course(outside, trace["replay"])
    for step in trace["steps"]:
        told = course.perform(step["action"], step["t"])
        found = Job.objects.get()
        seen: dict[str, Any] = {
            "t": step["t"],
            "action": step["action"],
            "returned": told,
            "status": WORDS.get(found.status, found.status),
            "generation": found.claim_generation,
            "lease_until": seconds(found.lease_expires_at),
            "outside_actions": len(outside.done),
            "slot": next(iter(EffectSlot.objects.values_list("status", flat=True)), None),
        }
        assert {name: seen[name] for name in step} == step
