"""`manage.py jobs list|show|explain`: what it shows, in which order, and what it never shows."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from jobs.handlers import Options
from jobs.handlers import job as register
from jobs.models import Job
from jobs.operations import listing
from jobs.status import JobStatus
from tests import build
from tests.commands.conftest import jobs

pytestmark = pytest.mark.django_db
MASK = "\N{BULLET}" * 3


def listed(*arguments: object) -> list[str]:
    """Return the ids that `jobs list` shows, in its order."""
    answer = jobs("list", "--json", *arguments)
    assert answer.code == 0, answer
    return [row["id"] for row in answer.document["jobs"]]


def test_list_is_newest_first_and_bounded():
    ids = [str(build.enqueue()) for _ in range(5)]
    assert listed() == ids[::-1]
    assert listed("--limit", 2) == ids[:2:-1]


def test_each_page_goes_on_where_the_one_before_ended():
    ids = [str(build.enqueue()) for _ in range(5)]
    first = jobs("list", "--json", "--limit", 3).document
    rest = jobs("list", "--json", "--limit", 3, "--before", first["before"]).document
    assert [row["id"] for row in first["jobs"] + rest["jobs"]] == ids[::-1]
    assert (rest["before"], rest["cut"]) == (None, False)


def test_every_filter_narrows_the_list():
    plain = build.enqueue()
    failed = build.id_of(build.job(JobStatus.FAILED))
    done = build.id_of(build.job(JobStatus.SUCCEEDED))
    elsewhere = build.enqueue(queue="elsewhere", unique_key="k-1", label="Invoice 17")
    other = Job.objects.enqueue("other.kind", {}).job_id
    assert listed("--status", "failed") == [str(failed)]
    assert listed("--status", "failed", "--status", "succeeded") == [str(done), str(failed)]
    assert listed("--queue", "elsewhere") == [str(elsewhere)]
    assert listed("--key", "k-1") == [str(elsewhere)]
    assert listed("--label", "voice") == [str(elsewhere)]
    assert listed("--kind", "other.kind") == [str(other)]
    assert listed("--kind", build.KIND, "--queue", "default", "--status", "pending") == [str(plain)]
    assert listed("--queue", "nowhere") == []


def test_jobs_are_listed_by_tag_and_argument_and_indexed_on_demand():
    wanted = Job.objects.enqueue("tests.later", {"n": 1}, options=Options(tags=("vip",))).job_id
    other = Job.objects.enqueue("tests.later", {"n": 2}).job_id

    @register("tests.later", search=["n"])
    def later(n: int) -> None:
        """Do nothing."""

    assert listed("--tag", "vip") == [str(wanted)]
    assert listed("--arg", "n=2") == []
    done = jobs("index", "--json", "--kind", "tests.later")
    assert done.document == {"kind": "tests.later", "jobs": 2, "added": 2, "removed": 0}
    assert listed("--arg", "n=2") == [str(other)]
    assert listed("--arg", "n=2", "--tag", "vip") == []
    assert "#vip" in jobs("list").out
    assert "vip" in jobs("show", wanted).out
    assert jobs("show", wanted, "--json").document["tags"] == ["vip"]


@pytest.mark.parametrize(
    "wrong", [("--tag", "a b"), ("--tag", ""), ("--arg", "n"), ("--arg", "nothing=1"), ("--arg", "=")]
)
def test_what_no_job_could_have_is_bad_usage(wrong):
    answer = jobs("list", *wrong)
    assert (answer.code, wrong[0] in answer.errors) == (2, True)


def test_kind_that_is_not_known_here_is_not_indexed():
    assert jobs("index", "--kind", "tests.nobodys").code == 2


@pytest.mark.parametrize(
    "wrong",
    [
        ("--limit", 0),
        ("--limit", 201),
        ("--limit", "many"),
        ("--limit", "9" * 5000),
        ("--status", "done"),
        ("--before", "xyz"),
        ("--before", "1234567"),
    ],
)
def test_a_wrong_filter_is_bad_usage(wrong):
    from django.core.management import CommandError

    try:
        answer = jobs("list", *wrong)
    except CommandError:  # argparse exits with 2 where it is not called from Python
        return
    assert answer.code == 2
    assert answer.errors


def test_a_rare_match_is_looked_for_in_a_bounded_window_and_the_walk_can_go_on(monkeypatch):
    monkeypatch.setattr(listing, "WINDOW", 3)
    rare = build.enqueue(label="needle")
    for _ in range(4):
        build.enqueue()
    first = jobs("list", "--json", "--label", "needle").document
    assert (first["jobs"], first["cut"]) == ([], True)
    second = jobs("list", "--json", "--label", "needle", "--before", first["before"]).document
    assert [row["id"] for row in second["jobs"]] == [str(rare)]


def test_a_status_with_an_index_of_its_own_is_found_beyond_the_window(monkeypatch):
    monkeypatch.setattr(listing, "WINDOW", 2)
    failed = build.id_of(build.job(JobStatus.FAILED))
    for _ in range(4):
        build.enqueue()
    assert listed("--status", "failed") == [str(failed)]


def test_the_text_list_says_how_to_go_on_and_what_is_on_hold():
    held = build.running(label="Invoice 1")
    build.hold(held)
    build.enqueue(label="Invoice 2")
    text = jobs("list").out
    assert "running *" in text
    assert "* on hold" in text
    assert "Invoice 2" in text
    assert f"--before {uuid.UUID(held.job_id)}" not in text
    assert "--before" in jobs("list", "--limit", 1).out


def test_a_label_cannot_steer_the_terminal():
    build.enqueue(label="red \x9b31m and \u202e turned")
    for answer in (jobs("list"), jobs("list", "--json")):
        assert "\x9b" not in answer.out
        assert "\u202e" not in answer.out


# -- one job ------------------------------------------------------------------------------------------


def test_show_has_the_row_its_attempts_effects_refusals_and_what_people_did():
    lease, other = build.running(), build.running()
    build.effect(lease, status="prepared", grants=0)
    for held in (lease, other):
        build.hold(held)
    assert Job.objects.commit(other, 1, now=build.at(1)).reason == "HELD"
    assert Job.objects.commit(lease, 1, now=build.at(1)).reason == "HELD"
    shown = jobs("show", uuid.UUID(lease.job_id), "--json").document
    assert (shown["status"], shown["hold_reason"], shown["claim_generation"]) == ("running", "operator", 1)
    assert [(a["generation"], a["status"], a["worker_id"]) for a in shown["attempts"]] == [
        (1, "running", build.WORKER)
    ]
    assert [(e["slot"], e["status"], e["grants"]) for e in shown["effects"]] == [("send", "prepared", 0)]
    assert [(r["point"], r["reason"], r["text"]) for r in shown["refusals"]] == [
        ("commit", "HELD", "The job is on hold.")
    ]
    assert [(c["verb"], c["actor"], c["reason"]) for c in shown["changes"]] == [("hold", "someone", "wait")]
    assert lease.input_digest not in jobs("show", uuid.UUID(lease.job_id), "--json").out
    text = jobs("show", uuid.UUID(lease.job_id)).out
    for part in (
        "Attempts",
        "Effects",
        "Refused writes",
        "What people did",
        "commit HELD: The job is on hold.",
    ):
        assert part in text


def test_times_keep_their_microseconds():
    lease = build.running(now=build.T0 + timedelta(microseconds=123457))
    shown = jobs("show", lease.job_id, "--json").document
    assert shown["lease_expires_at"] == "2026-03-01T12:01:00.123457+00:00"


def test_attempts_are_told_in_order_and_only_the_newest_of_very_many(monkeypatch):
    monkeypatch.setattr("jobs.operations.dossier.SHOWN", 2)
    job_id = build.enqueue()
    for second in range(3):
        lease = build.claim(job_id, now=build.at(second))
        assert Job.objects.release(lease, now=build.at(second)).landed
    shown = jobs("show", job_id, "--json").document
    assert [a["generation"] for a in shown["attempts"]] == [2, 3]


def test_secrets_are_masked_wherever_they_come_out():
    @register("tests.secret", redact=["account.number"])
    def secret(account: dict[str, str], password: str) -> None: ...

    job_id = Job.objects.enqueue(
        "tests.secret", {"account": {"number": "DE12-3456"}, "password": "hunter2!"}, now=build.T0
    ).job_id
    lease = build.claim(job_id)
    assert Job.objects.fail(
        lease,
        "HANDLER_CONTENT_FAILED",
        "account DE12-3456, password=hunter2!",
        retry_after=0,
        now=build.at(1),
    ).landed
    again = build.claim(job_id, now=build.at(2))
    assert Job.objects.commit(again, {"sent_to": "DE12-3456", "said": "hunter2!"}, now=build.at(3)).landed
    for answer in (jobs("show", job_id), jobs("show", job_id, "--json"), jobs("explain", job_id)):
        assert answer.code == 0
        assert "DE12-3456" not in answer.out
        assert "hunter2!" not in answer.out
    shown = jobs("show", job_id, "--json").document
    assert shown["input"] == {"account": {"number": MASK}, "password": MASK}
    assert shown["result"] == {"sent_to": MASK, "said": MASK}


def test_a_kind_that_declares_a_secret_later_hides_it_in_what_was_written_before():
    job_id = Job.objects.enqueue("tests.later", {"number": "DE12-3456"}, now=build.T0).job_id
    lease = build.claim(job_id)
    assert Job.objects.fail(lease, "HANDLER_CONTENT_FAILED", "no account DE12-3456", now=build.at(1)).landed
    assert "DE12-3456" in jobs("show", job_id).out

    @register("tests.later", redact=["number"])
    def later(number: str) -> None: ...

    for verb in ("show", "explain"):
        assert "DE12-3456" not in jobs(verb, job_id).out
        assert "DE12-3456" not in jobs(verb, job_id, "--json").out


def test_explain_says_one_sentence_and_gives_its_code_and_parameters():
    due = datetime.now(UTC) + timedelta(hours=1)
    job_id = Job.objects.enqueue(build.KIND, {}, options=Options(due_at=due)).job_id
    assert jobs("explain", job_id).out == f"Scheduled for {due:%Y-%m-%d %H:%M:%S} UTC.\n"
    document = jobs("explain", job_id, "--json").document
    assert (document["id"], document["code"]) == (str(job_id), "WHY_SCHEDULED")
    assert document["params"] == {"at": due.isoformat()}


# -- ids ----------------------------------------------------------------------------------------------


def test_the_beginning_of_an_id_is_enough_where_it_is_unique():
    job_id = build.enqueue()
    for text in (job_id.hex[:8], str(job_id)[:13], job_id.hex.upper(), str(job_id), f" {job_id} "):
        assert jobs("explain", text, "--json").document["id"] == str(job_id)


def test_a_beginning_that_several_jobs_share_is_bad_usage_and_names_them():
    ids = [build.enqueue() for _ in range(2)]
    assert ids[0].hex[:8] == ids[1].hex[:8]
    answer = jobs("show", ids[0].hex[:8])
    assert answer.code == 2
    assert str(ids[0]) in answer.errors
    assert str(ids[1]) in answer.errors


@pytest.mark.parametrize("text", ["1234567", "no-such-id", "", "0" * 33, "%", "' OR 1=1"])
def test_what_is_no_id_is_bad_usage(text):
    answer = jobs("show", text)
    assert answer.code == 2
    assert "is no id" in answer.errors


@pytest.mark.parametrize("verb", ["show", "explain"])
def test_a_job_that_is_not_there_ends_with_3_and_says_so_in_json_too(verb):
    gone = uuid.uuid4()
    answer = jobs(verb, gone)
    assert (answer.code, answer.errors) == (3, f"There is no job {gone}.\n")
    answer = jobs(verb, gone, "--json")
    assert (answer.code, answer.document["error"]["code"]) == (3, "NOT_FOUND")
