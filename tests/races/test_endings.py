"""Endings that meet: a job ends once, and whoever came second is told so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobs.models import Attempt, Job
from jobs.outcomes import Code, Lease
from jobs.status import AttemptStatus, JobStatus
from tests.build import RIVAL, at
from tests.races.ground import PERSON, alone, coherent, held, history, job_of, never_runs_again, version
from tests.races.interleave import Race, Run, Scene

FAILURE = "RUNTIME_HANDLER_EXCEPTION"


def commit(lease: Lease) -> Any:
    return Job.objects.commit(lease, {"pages": 1}, now=at(59))


def fail(lease: Lease) -> Any:
    return Job.objects.fail(lease, FAILURE, "boom", retry_after=0, now=at(59))


def renew(lease: Lease) -> Any:
    return Job.objects.renew(lease, now=at(59))


def recover() -> Any:
    """Recover as somebody whose clock has just seen the lease run out."""
    return Job.objects.recover(now=at(60))


HOLDERS = pytest.mark.parametrize("verb", [commit, fail])


@HOLDERS
def test_a_holders_ending_or_the_recovery_lands_and_never_both(race: Race, verb: Any) -> None:
    def scene() -> Scene:
        lease = alone()

        def check(run: Run) -> None:
            job = coherent(job_of(lease))
            landed, recovered = run.answers["holder"].landed, run.answers["recover"]
            assert landed != bool(recovered)
            assert len(history(job.pk)) == 2, "one claim, one ending"
            if recovered:
                assert run.answers["holder"].code == Code.FENCED
                assert Attempt.objects.get(pk=lease.attempt_id).status == AttemptStatus.LOST

        return Scene({"holder": lambda: verb(lease), "recover": recover}, check)

    explored = race.explore(scene)
    assert explored.complete
    assert explored.waits or not race.rows_are_locked
    assert explored.answers["recover"] == {"nothing", "pending"}


def test_a_renewed_lease_is_not_recovered_and_a_recovered_one_not_renewed(race: Race) -> None:
    def scene() -> Scene:
        lease = alone()

        def check(run: Run) -> None:
            job = coherent(job_of(lease))
            renewed, recovered = run.answers["renew"], run.answers["recover"]
            if recovered:
                assert not renewed.landed
                assert job.status == JobStatus.PENDING
            else:
                assert job.lease_expires_at == (at(119) if renewed.landed else at(60))
            if renewed.code == Code.BUSY:
                # Whoever held the row for the moment has let go: the answer is definite now.
                assert renew(lease).code == (Code.FENCED if recovered else Code.RENEWED)

        return Scene({"renew": lambda: renew(lease), "recover": recover}, check)

    explored = race.explore(scene)
    assert explored.complete
    busy = {"BUSY"} if race.rows_are_locked else set()
    assert explored.answers["renew"] == {"RENEWED", "FENCED GENERATION"} | busy


def test_a_cancel_and_a_commit_agree_on_which_came_first(race: Race) -> None:
    def scene() -> Scene:
        lease = alone()
        job_id = job_of(lease)

        def check(run: Run) -> None:
            job = coherent(job_id)
            if run.answers["commit"].landed:
                assert run.answers["cancel"].code == "ALREADY_ENDED"
                assert (job.status, job.cancel_requested_at) == (JobStatus.SUCCEEDED, None)
            else:
                assert run.answers["commit"].code == Code.CANCELLED
                assert run.answers["cancel"] == JobStatus.RUNNING
                assert Job.objects.acknowledge_cancel(lease, now=at(59)).status == JobStatus.CANCELLED
                never_runs_again(job_id)

        return Scene(
            {"commit": lambda: commit(lease), "cancel": lambda: Job.objects.cancel(job_id, actor="ada")},
            check,
        )

    explored = race.explore(scene)
    assert explored.complete
    assert explored.answers["commit"] == {"COMMITTED", "CANCELLED CANCELLED"}


ENDERS: dict[str, Callable[[Lease], Any]] = {"fail": fail, "recover": lambda _lease: recover()}


@pytest.mark.parametrize("ender", list(ENDERS))
def test_a_job_cancelled_while_it_is_given_back_never_runs_again(race: Race, ender: str) -> None:
    def scene() -> Scene:
        lease = alone()
        job_id = job_of(lease)

        def check(run: Run) -> None:
            assert run.answers["cancel"] in (JobStatus.RUNNING, JobStatus.CANCELLED)
            if run.answers.get("recover") == []:  # it skipped the row that the cancel was working on
                recover()
            assert coherent(job_id).status == JobStatus.CANCELLED
            assert coherent(job_id).claim_generation <= 2
            never_runs_again(job_id)

        return Scene(
            {
                ender: lambda: ENDERS[ender](lease),
                "cancel": lambda: Job.objects.cancel(job_id, actor="ada", now=at(59)),
            },
            check,
        )

    explored = race.explore(scene)
    assert explored.complete
    assert explored.answers["cancel"] == {"running", "cancelled"}


def test_a_cancel_during_the_rescue_and_the_next_claim_never_leaves_a_run_that_nobody_stops(
    race: Race,
) -> None:
    def scene() -> Scene:
        lease = alone()
        job_id = job_of(lease)

        def check(run: Run) -> None:
            job = coherent(job_id)
            if run.answers["claim"]:
                assert job.cancel_requested_at is not None
                assert Job.objects.commit(run.answers["claim"], 1, now=at(61)).code == Code.CANCELLED
            else:
                assert job.status == JobStatus.CANCELLED
                never_runs_again(job_id)

        return Scene(
            {
                "recover": recover,
                "cancel": lambda: Job.objects.cancel(job_id, actor="ada", now=at(60)),
                "claim": lambda: Job.objects.claim_job(job_id, worker_id=RIVAL, epoch=1, now=at(60)),
            },
            check,
        )

    explored = race.explore(scene, most=40)
    assert {"LEASE", "None"} <= explored.answers["claim"]


@HOLDERS
def test_a_forced_cancel_beats_the_holder_or_is_told_that_the_job_moved(race: Race, verb: Any) -> None:
    def scene() -> Scene:
        lease = held()
        job_id = job_of(lease)
        seen = version(job_id)

        def check(run: Run) -> None:
            job = coherent(job_id)
            forced = run.answers["force"]
            if run.answers["holder"].landed:
                assert forced.code in ("VERSION", "ALREADY_ENDED")
                assert job.cancel_requested_at is None
            else:
                assert forced == JobStatus.CANCELLED
                assert run.answers["holder"].reason == "GENERATION"
                never_runs_again(job_id)

        return Scene(
            {
                "holder": lambda: verb(lease),
                "force": lambda: Job.objects.force_cancel(job_id, state_version=seen, now=at(59), **PERSON),
            },
            check,
        )

    explored = race.explore(scene)
    assert explored.complete
    assert len(explored.answers["force"]) == 2


def test_a_revision_before_the_commit_makes_its_result_stale(race: Race) -> None:
    def scene() -> Scene:
        lease = held()
        job_id = job_of(lease)
        seen = version(job_id)

        def check(run: Run) -> None:
            job = coherent(job_id)
            if run.answers["commit"].landed:
                assert run.answers["revise"].code == "SUCCEEDED"
                assert job.revision == 1
            else:
                assert run.answers["commit"].code == Code.STALE_INPUT
                assert run.answers["revise"] == job.revision == 2
                assert Job.objects.release(lease, now=at(59)).status == JobStatus.PENDING

        return Scene(
            {
                "commit": lambda: commit(lease),
                "revise": lambda: Job.objects.revise(job_id, {"to": "text"}, state_version=seen, **PERSON),
            },
            check,
        )

    explored = race.explore(scene)
    assert explored.complete
    assert len(explored.answers["commit"]) == 2


def test_a_hold_before_the_commit_keeps_the_result_out(race: Race) -> None:
    def scene() -> Scene:
        lease = held()

        def check(run: Run) -> None:
            job = coherent(job_of(lease))
            landed = run.answers["commit"].landed
            assert landed == (run.answers["hold"] is not True)
            assert landed == (job.status == JobStatus.SUCCEEDED)
            assert landed or run.answers["commit"].reason == "HELD"

        return Scene(
            {"commit": lambda: commit(lease), "hold": lambda: Job.objects.hold(job_of(lease), **PERSON)},
            check,
        )

    explored = race.explore(scene)
    assert explored.complete
    assert len(explored.answers["commit"]) == 2


def test_one_commit_sent_twice_at_once_is_answered_twice_and_kept_once(race: Race) -> None:
    def scene() -> Scene:
        lease = held()

        def check(run: Run) -> None:
            answers = list(run.answers.values())
            assert [a.code for a in answers] == [Code.COMMITTED, Code.COMMITTED]
            assert sorted(a.replay for a in answers) == [False, True]
            assert history(job_of(lease))[1:] == [("commit", "succeeded")]
            coherent(job_of(lease))

        return Scene({"first": lambda: commit(lease), "again": lambda: commit(lease)}, check)

    assert race.explore(scene).complete


def test_two_results_of_one_attempt_leave_one_and_a_conflict(race: Race) -> None:
    def scene() -> Scene:
        lease = held()

        def check(run: Run) -> None:
            reasons = sorted(answer.reason for answer in run.answers.values())
            assert reasons == ["", "RESULT_CONFLICT"]
            coherent(job_of(lease))
            kept = Attempt.objects.get(pk=lease.attempt_id)
            (winner,) = [a for a in run.answers.values() if a.landed]
            assert kept.result_digest == winner.result_digest

        return Scene(
            {
                "one": lambda: Job.objects.commit(lease, 1, now=at(59)),
                "two": lambda: Job.objects.commit(lease, 2, now=at(59)),
            },
            check,
        )

    assert race.explore(scene).complete


def test_what_is_staged_while_the_lease_is_recovered_is_nobodys_result(race: Race) -> None:
    def scene() -> Scene:
        lease = alone()

        def check(run: Run) -> None:
            job = coherent(job_of(lease))
            attempt = Attempt.objects.get(pk=lease.attempt_id)
            assert (attempt.staged_at is not None) == run.answers["stage"].landed
            if run.answers["recover"]:
                digest = run.answers["stage"].result_digest or "none"
                assert not Job.objects.commit(lease, staged_digest=digest, now=at(59)).landed
                assert job.result_commit_id is None

        return Scene(
            {"stage": lambda: Job.objects.stage(lease, {"pages": 1}, now=at(59)), "recover": recover}, check
        )

    assert race.explore(scene).complete
