"""`manage.py drain`: what keeps the cluster from being stopped, and what waiting changes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from jobs.ledger.clock import clock
from jobs.models import AuditEntry, Job, Scheduler, Worker
from jobs.operations import drain, exposure
from jobs.operations.drain import Verdict
from jobs.outcomes import Lease
from jobs.status import HoldReason, JobStatus
from tests import build
from tests.commands.conftest import manage

pytestmark = pytest.mark.django_db
BY = ("--as", "grace", "--reason", "deploy")
BECAUSE: dict[str, Any] = {"actor": "ann", "reason": "drill"}


def close() -> None:
    Job.objects.close_claims(**BECAUSE)


def live() -> Lease:
    """A lease that is good now, by the database's clock."""
    lease = Job.objects.claim_job(build.enqueue(), worker_id=build.WORKER)
    assert lease is not None
    return lease


def part(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(part for part in document["parts"] if part["name"] == name)


def test_nothing_in_flight_and_claims_closed_is_safe():
    build.enqueue()
    build.job(JobStatus.SUCCEEDED)
    close()
    answer = manage("drain", "--json")
    assert (answer.code, answer.document["verdict"]) == (0, "SAFE")
    assert manage("drain").out.endswith("SAFE\n")


def test_open_claims_block_because_waiting_changes_nothing():
    answer = manage("drain", "--json")
    assert (answer.code, answer.document["verdict"], answer.document["claims_open"]) == (2, "BLOCKED", True)
    assert part(answer.document, "claims")["verdict"] == "BLOCKED"
    assert manage("drain", "--wait", "--timeout", 600).code == 2, "it does not wait for what cannot come"


def staged() -> None:
    assert Job.objects.stage(live(), 1).landed


def quarantined() -> None:
    Job.objects.hold(build.id_of(live()), **BECAUSE, hold_reason=HoldReason.QUARANTINE)


def left_behind() -> None:
    build.register(build.WORKER)
    manage_beat()
    Job.objects.raise_epoch(expected=1, **BECAUSE)


def manage_beat() -> None:
    """Let the worker have been heard of just now."""
    from jobs.ledger import worker as worker_rows
    from jobs.ledger.session import transact
    from jobs.vocabulary import JOB

    values: dict[str, Any] = {"running": 0, "epoch": 1, "stopping": False, "stopped": False, "passes": {}}
    transact(
        lambda session: worker_rows.beat(session, id=build.WORKER, **values),
        using="default",
        vocabulary=JOB,
        durable=False,
    )


def beating(worker_id: str, version: str, **columns: Any) -> None:
    """Let a worker of a version have been heard of just now."""
    build.register(worker_id)
    now = clock()
    values = {"version": version, "started_at": now, "beat_at": now} | columns
    field: Any = Worker._meta.get_field
    names = ", ".join(f"{name} = %s" for name in values)
    with connection.cursor() as cursor:
        prepared = [field(name).get_db_prep_save(value, connection) for name, value in values.items()]
        cursor.execute(f"UPDATE jobs_worker SET {names} WHERE id = %s", [*prepared, worker_id])


def two_versions() -> None:
    beating(build.RIVAL, "8.4.0", started_at=build.T0)
    beating(build.WORKER, "8.4.1")


REASONS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a lease": (live, "leases", "WAIT"),
    "a lease that ran out": (build.running, "leases", "WAIT"),
    "a quarantined lease": (quarantined, "quarantined", "BLOCKED"),
    "a staged result": (staged, "staged", "WAIT"),
    "an effect being sent": (lambda: build.effect(live(), status="executing"), "executing", "WAIT"),
    "an unknown effect": (lambda: build.effect(live(), status="unknown"), "unknown", "BLOCKED"),
    "an uncertain job": (lambda: build.job(JobStatus.UNCERTAIN), "uncertain", "BLOCKED"),
    "a worker of an old epoch": (left_behind, "workers", "WAIT"),
    "a worker of another version": (two_versions, "versions", "WAIT"),
}


@pytest.mark.parametrize("reason", list(REASONS))
def test_each_reason_is_found_and_shown(reason):
    make, name, verdict = REASONS[reason]
    made = make()
    close()
    answer = manage("drain", "--json")
    found = part(answer.document, name)
    assert (found["verdict"], found["count"]) == (verdict, 1)
    assert answer.document["verdict"] != "SAFE"
    assert answer.code == (2 if any(p["verdict"] == "BLOCKED" for p in answer.document["parts"]) else 1)
    if isinstance(made, Lease):
        assert found["rows"][0]["id"] == str(build.id_of(made))
    assert f"{name} 1" in manage("drain").out


def test_right_version_is_that_of_the_worker_started_last_or_the_one_that_is_given():
    two_versions()
    beating("host:3:c", "8.4.0", started_at=build.T0)  # there are more of it, but it is the older one
    beating("host:4:d", "")  # a remote worker need not say one
    beating("host:5:e", "8.3.0", beat_at=build.T0)  # not heard of any more
    beating("host:6:f", "8.3.0", stopped_at=clock())
    close()
    told = manage("drain", "--json").document
    assert told["version"] == "8.4.1"
    assert told["versions"] == [{"version": "8.4.0", "workers": 2}, {"version": "8.4.1", "workers": 1}]
    assert [row["id"] for row in part(told, "versions")["rows"]] == [build.RIVAL, "host:3:c"]
    assert "Workers of another version that are still beating. 1 of 3 are 8.4.1." in manage("drain").out
    told = manage("drain", "--json", "--workers-version", "8.4.0").document
    assert (told["version"], part(told, "versions")["count"]) == ("8.4.0", 1)
    told = manage("drain", "--json", "--workers-version", "9\0").document
    assert part(told, "versions")["count"] == 3


def test_service_of_other_kinds_may_have_a_version_of_its_own():
    beating(build.RIVAL, "3.1", kinds=["render.page"], started_at=build.T0)
    beating(build.WORKER, "8.4.1", kinds=["billing.settle", "billing.refund"])
    close()
    assert part(manage("drain", "--json").document, "versions")["count"] == 0
    beating("host:3:c", "8.4.0", kinds=["billing.settle"], started_at=build.T0)
    told = part(manage("drain", "--json").document, "versions")
    assert [row["id"] for row in told["rows"]] == ["host:3:c"]
    told = part(manage("drain", "--json", "--workers-version", "8.4.1").document, "versions")
    assert [row["id"] for row in told["rows"]] == [build.RIVAL, "host:3:c"]


def test_workers_of_one_version_are_at_zero_and_are_counted():
    for worker_id in (build.WORKER, build.RIVAL):
        beating(worker_id, "8.4.1")
    close()
    answer = manage("drain")
    assert (answer.code, answer.out.endswith("SAFE\n")) == (0, True)
    assert "versions 0: Workers of another version that are still beating. 2 of 2 are 8.4.1." in answer.out


def test_claims_that_are_closed_say_by_whom_and_why():
    close()
    assert "claims: Claims are closed. By ann: drill\n" in manage("drain").out


def test_long_lists_say_how_many_more(monkeypatch):
    for _ in range(drain.SHOWN + 3):
        build.running()
    close()
    found = part(manage("drain", "--json").document, "leases")
    assert (len(found["rows"]), found["count"], found["more"]) == (drain.SHOWN, drain.SHOWN + 3, False)
    assert "and 3 more" in manage("drain").out
    monkeypatch.setattr(drain, "BOUND", drain.SHOWN + 1)
    assert part(manage("drain", "--json").document, "leases")["more"] is True
    assert "and 1+ more" in manage("drain").out


def test_look_asks_a_fixed_number_of_questions(django_assert_max_num_queries):
    for _ in range(3):
        build.running()
    with django_assert_max_num_queries(11):
        drain.look()


INDEXES = ("job_running", "job_abnormal", "job_held", "effect_open")


def test_no_big_table_is_read(django_assert_max_num_queries):
    """Every read of jobs and slots goes along a partial index, or by key from one that did."""
    if connection.features.has_select_for_update:
        pytest.skip("this database chooses by the sizes of tables; `make bench-console` has large ones")
    with django_assert_max_num_queries(30) as asked:
        drain.look()
        exposure.of_all("default")
        exposure.of_worker(build.WORKER, "default")
    reads = [q["sql"] for q in asked.captured_queries if "jobs_job" in q["sql"] or "effectslot" in q["sql"]]
    assert len(reads) == 14
    for sql in reads:
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN QUERY PLAN " + sql.replace("%", "%%"))
            plan = "\n".join(str(row) for row in cursor.fetchall())
        assert any(name in plan for name in INDEXES), f"{sql}\n{plan}"


def test_claims_are_closed_first_by_somebody_entitled_for_a_reason(chief, person):
    person("eve")
    answer = manage("drain", "--close-claims", "--as", "eve", "--reason", "deploy", "--json")
    assert (answer.code, answer.document["error"]["code"]) == (3, "NOT_PERMITTED")
    assert manage("drain", "--close-claims", "--as", "grace").code == 3
    answer = manage("drain", "--close-claims", "--reason", "deploy")
    assert (answer.code, answer.errors) == (3, "Say who you are: --as USER.\n")
    assert Scheduler.objects.get().claims_open
    assert manage("drain", "--close-claims", *BY).code == 0
    assert not Scheduler.objects.get().claims_open
    assert AuditEntry.objects.get().action == "close_claims"


@pytest.mark.django_db(transaction=True)
def test_waiting_takes_back_what_ran_out_although_claims_are_closed():
    lease = build.running()
    close()
    answer = manage("drain", "--wait", "--timeout", 60, "--json")
    assert (answer.code, answer.document["verdict"]) == (0, "SAFE")
    assert build.row(lease)["status"] == "pending"
    assert build.attempt(lease)["status"] == "lost"


@pytest.mark.django_db(transaction=True)
def test_time_that_is_up_is_wait():
    live()
    close()
    answer = manage("drain", "--wait", "--timeout", 0, "--json")
    assert (answer.code, answer.document["verdict"]) == (1, "WAIT")
    assert "leases 1" in answer.errors


def wait(recover: Callable[[], object], *, timeout: float = 10) -> tuple[drain.Checklist, float]:
    """Wait on a clock of our own; returns what was found and after how many seconds."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    found = drain.wait(timeout=timeout, recover=recover, sleep=sleep, seconds=lambda: now[0])
    return found, now[0]


def test_it_waits_for_a_lease_and_ends_when_only_a_person_can_help():
    lease = live()
    close()
    passes = []

    def ends_in_doubt() -> None:
        passes.append(1)
        if len(passes) == 4:
            assert Job.objects.uncertain(lease, "no answer came").landed

    found, seconds = wait(ends_in_doubt)
    assert (found.verdict, seconds, found.waiting_helps) == (Verdict.BLOCKED, 3.0, False)
    found, seconds = wait(lambda: None)
    assert seconds == 0


def test_it_waits_no_longer_than_it_was_told():
    live()
    close()
    found, seconds = wait(lambda: None, timeout=2.5)
    assert (found.verdict, seconds) == (Verdict.WAIT, 2.5)


def test_claims_opened_while_it_looks_are_no_safe_end(monkeypatch):
    close()
    real = drain._part

    def opening(name: str, *arguments: Any) -> Any:
        if name == "workers":
            Job.objects.open_claims(**BECAUSE)
        return real(name, *arguments)

    monkeypatch.setattr(drain, "_part", opening)
    assert drain.look().verdict is Verdict.BLOCKED
