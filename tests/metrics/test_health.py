"""`manage.py health`: says what is wrong, how bad it is, and changes nothing."""

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

from jobs import health
from jobs.guards import TRIGGERS
from jobs.health import Level
from jobs.ledger import metrics, triggers
from jobs.ledger import worker as worker_rows
from jobs.ledger.session import transact
from jobs.models import Change, Job
from jobs.status import HoldReason, JobStatus
from jobs.vocabulary import JOB
from tests import build
from tests.build import KIND, at, enqueue

pytestmark = pytest.mark.django_db


NOW = at(100)


def least():
    """Return how well a test run can be: its server may be one that is allowed to forget a commit."""
    return Level.WARNING if metrics.unsafe_settings("default") else Level.OK


def ledger(work, now):
    return transact(work, using="default", vocabulary=JOB, now=now, durable=False, fenced=False)


def worker(name="h:1:a", *, now, queues=("default",), passes=None):
    values = {
        "host": "h",
        "pid": 1,
        "boot_id": "",
        "pid_namespace": "",
        "pid_started": None,
        "version": "",
        "concurrency": 1,
        "epoch": 1,
    }
    ledger(lambda s: worker_rows.register(s, id=name, queues=list(queues), kinds=[KIND], **values), now)
    if passes is not None:
        shown = {part: moment.isoformat() for part, moment in passes.items()}
        states = {"running": 0, "epoch": 1, "stopping": False, "stopped": False}
        ledger(lambda s: worker_rows.beat(s, id=name, passes=shown, **states), now)


def found(part, now=NOW):
    return {finding.part: finding for finding in health.examine(now=now)}[part]


def run(*options):
    out = io.StringIO()
    try:
        call_command("health", *options, stdout=out, no_color=True)
    except SystemExit as end:
        return end.code, out.getvalue()
    return 0, out.getvalue()


def test_fresh_installation_is_well():
    code, text = run()
    assert code == least()
    assert text.endswith("All is well.\n" if code == 0 else "deserves a look.\n")
    assert all(finding.level == Level.OK for finding in health.examine() if finding.part != "durability")


def test_json_says_the_same_as_the_lines():
    enqueue(queue="mail")
    code, text = run("--json")
    report = json.loads(text)
    assert (code, report["status"]) == (1, "warning")
    assert [check["part"] for check in report["checks"]] == [f.part for f in health.examine()]
    [queue] = next(check for check in report["checks"] if check["part"] == "queues")["queues"]
    assert (queue["queue"], queue["due"], queue["served"]) == ("mail", 1, False)
    assert {check["text"] for check in report["checks"] if check["part"] != "queues"} <= {
        line[21:] for line in run()[1].splitlines()
    }


def test_no_database_is_broken_and_names_no_host(monkeypatch):
    def gone(*_args, **_kwargs):
        raise OperationalError('connection to "db.internal" failed')

    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", gone)
    code, text = run()
    assert code == 2
    assert text.splitlines()[0] == f"{'broken':<8} {'database':<11} The database cannot be reached."
    assert "db.internal" not in text


def test_missing_migration_is_broken_and_says_what_to_do():
    MigrationRecorder(connection).record_unapplied("jobs", "0001_initial")
    code, text = run()
    assert code == 2
    assert "jobs.0001_initial first: run manage.py migrate" in text
    assert found("migrations").facts == {"missing": ["jobs.0001_initial"]}


def test_missing_guard_is_broken_and_a_strange_one_a_warning():
    name = triggers._name(TRIGGERS[0])
    with connection.cursor() as cursor:
        triggers._drop(cursor, connection.vendor, name)
    assert found("triggers").level == Level.BROKEN
    assert found("triggers").facts["missing"] == [TRIGGERS[0].name]
    triggers.lay("default")
    assert found("triggers").level == Level.OK


def test_server_that_may_forget_a_commit_is_a_warning():
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("this database has no server")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
    assert found("durability").level == Level.WARNING
    assert "synchronous_commit" in found("durability").text


def test_closed_claims_name_who_and_why():
    Job.objects.close_claims(actor="ann", reason="switching servers", now=at(0))
    finding = found("scheduler")
    assert finding.level == Level.WARNING
    assert "closed by ann: switching servers" in finding.text


def test_clock_that_went_back_is_a_warning():
    from jobs.ledger import epoch

    ledger(epoch.mark_clock, at(130))
    assert found("scheduler", at(129)).level == Level.OK
    assert found("scheduler", at(128.9)).level == Level.WARNING


def test_due_queue_needs_a_live_worker_that_serves_it():
    enqueue(queue="mail", now=at(90))
    assert found("queues").level == Level.WARNING
    assert "which no live worker serves" in found("queues").text
    worker(now=at(95), queues=["mail"])
    assert found("queues").level == Level.OK
    assert found("queues", at(90) + health.LATE).level == Level.WARNING, "the worker has fallen silent"


def test_fenced_worker_serves_nothing_however_it_beats():
    enqueue(now=at(90))
    worker(now=at(95))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_worker SET fenced_at = beat_at")
    assert found("queues").level == Level.WARNING


def test_job_that_waits_too_long_is_a_warning_also_with_a_worker():
    enqueue(now=at(0))
    late = at(0) + health.LATE
    worker(now=late)
    assert found("queues", late).level == Level.OK
    assert found("queues", late + timedelta(seconds=1)).level == Level.WARNING


def test_paused_queue_is_said_to_be_and_is_no_warning():
    enqueue(queue="mail", now=at(0))
    Job.objects.pause_queue("mail", actor="ann", reason="r", until=at(200), now=at(0))
    assert (found("queues").level, "paused" in found("queues").text) == (Level.OK, True)
    assert found("queues", at(200)).level == Level.WARNING


def test_silent_worker_is_a_warning_until_it_has_stopped_in_an_orderly_way():
    worker(now=at(0))
    assert found("workers", at(90)).level == Level.OK
    assert found("workers", at(91)).level == Level.WARNING
    assert found("workers", at(91)).facts["silent"] == ["h:1:a"]
    states = {"running": 0, "epoch": 1, "stopping": True, "stopped": True}
    ledger(lambda s: worker_rows.beat(s, id="h:1:a", passes={}, **states), at(91))
    assert found("workers", at(500)).level == Level.OK


def test_worker_whose_loop_has_died_is_a_warning_although_it_beats():
    worker(now=at(100), passes={"attend": at(5)})
    assert found("workers").level == Level.WARNING
    assert found("workers").facts["stuck"] == ["h:1:a"]


@pytest.mark.parametrize("text", ["", "yesterday", 5, None])
def test_pass_that_cannot_be_read_is_no_pass(text):
    assert health._instant(text) is None


def test_expired_lease_that_nobody_takes_back_is_a_warning():
    build.running(now=at(0))
    assert found("leases", at(59)).level == Level.OK
    assert "no worker is alive" in found("leases", at(60)).text
    worker(now=at(60), passes={"attend": at(60), "recover": at(50)})
    finding = found("leases", at(61))
    assert finding.level == Level.OK
    assert (finding.facts["last_recovery"], finding.facts["expired"]) == (at(50), 1)
    worker("h:1:b", now=at(151))
    assert "recovery does not get at them" in found("leases", at(151)).text


def test_decisions_that_wait_for_a_person_are_a_warning():
    Job.objects.hold(enqueue(), actor="ann", reason="r", now=at(1))
    assert found("decisions").level == Level.OK, "ann knows of it"
    Job.objects.hold(enqueue(), actor="w", reason="r", hold_reason=HoldReason.QUARANTINE, now=at(1))
    assert found("decisions").level == Level.WARNING


def test_uncertain_job_is_a_warning():
    build.job(JobStatus.UNCERTAIN)
    assert (found("decisions").level, found("decisions").facts["uncertain"]) == (Level.WARNING, 1)


def test_examination_changes_nothing():
    build.running(now=datetime.now(UTC) - timedelta(hours=1))
    before = list(Job.objects.values_list()), Change.objects.count()
    assert run()[0] == 1
    assert (list(Job.objects.values_list()), Change.objects.count()) == before


def test_help_names_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        call_command("health", "--help")
    assert "exit code: 0 all is well" in " ".join(capsys.readouterr().out.split())
