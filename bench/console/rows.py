"""The rows of jobs and attempts, as the verbs would have left them: values that both databases take."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from bench.console.story import INVOICE, KIND, Story, Tale
from jobs.models.case import CaseKind
from jobs.status import CLAIMABLE, TERMINAL, AttemptStatus, HoldReason, JobStatus, WaitReason

Values = dict[str, Any]
LEASE = timedelta(seconds=60)
TRACEBACK = """\
Traceback (most recent call last):
  File "billing/ledger.py", line 88, in open_balance
    return self._get(f"/accounts/{account}/balance", timeout=5)
  File "billing/http.py", line 41, in _get
    raise LedgerUnavailable(response.status)
billing.errors.LedgerUnavailable: the ledger answers 503"""
DIGEST = "0" * 64
"""Nobody here compares one; to make millions would take longer than to write the rows."""
LOG = "claimed\nledger balance read\nlaid out in 12 pages"
ENDS = {
    JobStatus.SUCCEEDED: AttemptStatus.COMMITTED,
    JobStatus.FAILED: AttemptStatus.FAILED,
    JobStatus.CANCELLED: AttemptStatus.CANCELLED,
    JobStatus.SKIPPED: AttemptStatus.SKIPPED,
    JobStatus.UNCERTAIN: AttemptStatus.UNCERTAIN,
    JobStatus.WAITING: AttemptStatus.WAITING,
    JobStatus.RUNNING: AttemptStatus.RUNNING,
}


def moment(at: datetime) -> str:
    """Return an instant as both databases take it."""
    return at.isoformat(" ")[:26]


def jobs(story: Story) -> Iterator[Values]:
    """Yield a row for each job."""
    for tale in story.tales():
        row: Values = {
            "id": tale.id,
            "kind": tale.kind,
            "queue": tale.queue,
            "label": tale.label,
            "tags": " ".join(tale.tags),
            "status": tale.status.value,
            "priority": (-10, 0, 0, 0, 0, 0, 0, 10)[tale.mix >> 7 & 7],
            "state_version": 1 + 2 * tale.attempts,
            "input": f'{{"customer":{tale.mix % 100_000},"{INVOICE}":"{tale.label}"}}',
            "input_digest": DIGEST,
            "enqueued_by": "token shop-api",
            "created_at": moment(tale.created),
            "max_attempts": 40 if tale.rare else 5,
            "attempt_count": tale.attempts,
            "claim_generation": tale.attempts,
            "scheduler_epoch": 1,
            "unique_key": f"order-{tale.number}" if tale.mix % 3 == 0 else None,
            "concurrency_key": f"account-{tale.mix % 5000}" if tale.mix % 11 == 0 else None,
            "parent_id": story.parent_of(tale),
        }
        yield row | _standing(story, tale)


def attributes(story: Story) -> Iterator[Values]:
    """Yield a row for each tag, and for each argument that the kinds declare."""
    number = 0
    for tale in story.tales():
        for name, value in (*(("", tag) for tag in tale.tags), (INVOICE, tale.label)):
            number += 1
            yield {"id": number, "job_id": tale.id, "name": name, "value": value}


def _standing(story: Story, tale: Tale) -> Values:
    """Return what a job's status brings with it."""
    status, row = tale.status, Values()
    if tale.attempts:
        row["started_at"] = moment(tale.started(1))
        row["attempt_id"] = tale.attempt_id(tale.attempts)
    if status in TERMINAL:
        row["finished_at"] = moment(tale.ended(tale.attempts))
    if status == JobStatus.SUCCEEDED:
        row["result_commit_id"] = row["attempt_id"]
    if status in (JobStatus.FAILED, JobStatus.SKIPPED):
        row["error_code"], row["error_message"] = tale.error
    if status == JobStatus.CANCELLED:
        row |= {"cancel_requested_at": moment(tale.ended(1)), "cancel_generation": 1}
        row |= {"cancel_requested_by": "ada", "cancel_reason": "ordered twice"}
    if status == JobStatus.RUNNING:
        row |= {
            "worker_id": tale.worker(1),
            "lease_expires_at": moment(story.now + LEASE),
            "heartbeat_at": moment(story.now),
        }
    if status == JobStatus.BLOCKED:
        row["unmet_edges"] = 1
    if status == JobStatus.WAITING:
        row["wait_reason"] = WaitReason.TIMER.value
    if status == JobStatus.UNCERTAIN and tale.matter and tale.matter.kind == CaseKind.UNKNOWN:
        row["open_effects"] = 1
    if status in CLAIMABLE:
        row |= _claimable(story, tale)
    return row


def _claimable(story: Story, tale: Tale) -> Values:
    """Return when it may be claimed: two of three are ready, one of sixteen is on hold."""
    if tale.matter:  # it waits for its approval, which has no due time
        return {"wait_reason": WaitReason.APPROVAL.value}
    if tale.mix % 16 == 5:
        return {"hold_reason": HoldReason.OPERATOR.value, "next_attempt_at": moment(tale.created)}
    if tale.status == JobStatus.PENDING and tale.mix % 3:
        return {"ready_at": moment(tale.created), "next_attempt_at": moment(tale.created)}
    return {"next_attempt_at": moment(story.now + timedelta(seconds=60 + tale.mix % 36_000))}


def attempts(story: Story) -> Iterator[Values]:
    """Yield a row for each attempt: those before the last one failed or were lost."""
    for tale in story.tales():
        for turn in range(1, tale.attempts + 1):
            row: Values = {
                "id": tale.attempt_id(turn),
                "job_id": tale.id,
                "generation": turn,
                "worker_id": tale.worker(turn),
                "scheduler_epoch": 1,
                "started_at": moment(tale.started(turn)),
                "beats": tale.mix % 4,
            }
            last = turn == tale.attempts
            status = ENDS[tale.status] if last else _before(tale, turn)
            row["status"] = status.value
            if status == AttemptStatus.RUNNING:
                row |= {"progress_done": tale.mix % 300, "progress_total": 300, "log": LOG}
            else:
                row["finished_at"] = moment(tale.ended(turn))
            if status == AttemptStatus.COMMITTED:
                row["result"] = _result(tale)
                row["result_digest"] = DIGEST
            if status == AttemptStatus.FAILED:
                row["error_code"], row["error_message"] = tale.error
                row["traceback"] = TRACEBACK if tale.mix % 4 == 0 else ""
            yield row


def _before(tale: Tale, turn: int) -> AttemptStatus:
    return AttemptStatus.LOST if (tale.mix + turn) % 5 == 0 else AttemptStatus.FAILED


def _result(tale: Tale) -> str:
    if tale.kind == KIND:
        return f'{{"file":"results/{tale.id}.html","seconds":1.4,"target_bytes":18211,"title":"Price list"}}'
    return f'{{"captured":"118.40","currency":"EUR","receipt":"R-{tale.number}"}}'
