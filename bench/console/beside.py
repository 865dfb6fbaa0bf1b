"""The rows beside the jobs: who works, what was refused, the feed, the figures of each minute."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from bench.console.rows import Values, moment
from bench.console.story import KIND, QUEUES, VERBS, Story, worker
from jobs.measures import BUCKETS, HOURLY, hour_of
from jobs.outcomes import REASONS
from jobs.status import JobStatus

POINTS = ("claim", "renew", "commit", "fail", "release", "uncertain")
FEED = 5
"""One job in so many has its claim and its end in rows of the feed of their own; the rest came in batches."""
REFUSED = 50
"""One job in so many has met a refused write."""
ACTS = ("hold", "cancel", "retry", "unhold")


def workers(story: Story) -> Iterator[Values]:
    """Yield forty workers: thirty at work, two silent, one fenced, seven that have stopped."""
    for number in range(40):
        silent, fenced, stopped = number in (30, 31), number == 32, number > 32
        beat = story.now - timedelta(seconds=3600 if silent or stopped else number % 12)
        row: Values = {
            "id": worker(number),
            "host": f"app-{number:02}",
            "pid": 2000 + number,
            "boot_id": "b",
            "version": "0.1.0",
            "queues": json.dumps(["*"] if number % 4 == 0 else list(QUEUES[number % 8 : number % 8 + 6])),
            "kinds": json.dumps([f"{queue}.{verb}" for queue in QUEUES[:8] for verb in VERBS] + [KIND]),
            "concurrency": 8,
            "scheduler_epoch": 1,
            "started_at": moment(story.now - timedelta(days=1)),
            "beat_at": moment(beat),
            "running": number % 8,
            "passes": json.dumps({name: beat.isoformat() for name in ("claim", "recover", "promote")}),
        }
        if stopped:
            row["stopped_at"] = moment(beat)
        if fenced:
            row |= {"fenced_at": moment(beat), "fenced_by": "ada"}
        yield row


def queues(story: Story) -> Iterator[Values]:
    """Yield what was said of three queues: two are paused, one was."""
    for name in QUEUES[2:5]:
        until = story.now + timedelta(hours=-1 if name == QUEUES[4] else 2)
        said = {"paused_by": "ada", "pause_reason": "the provider's maintenance"}
        paused = {"paused_at": moment(story.now - timedelta(hours=2)), "paused_until": moment(until)}
        yield {"name": name} | paused | said


def refusals(story: Story) -> Iterator[Values]:
    """Yield writes that came too late; one sort of them once in a long while only."""
    met = (tale for tale in story.tales() if tale.number % REFUSED == 0 and tale.attempts > 1)
    for number, tale in enumerate(met, start=1):
        yield {
            "id": number,
            "at": moment(tale.started(2)),
            "job_id": tale.id,
            "point": POINTS[number % 3],
            "reason": "TIMELINE" if number == 7 else REASONS[(2, 4, 7, 10)[number % 4]],
            "worker_id": tale.worker(1),
            "attempt_id": tale.attempt_id(1),
            "presented": json.dumps({"generation": 1, "epoch": 1, "worker_id": tale.worker(1)}),
            "found": json.dumps(
                {"generation": 2, "epoch": 1, "worker_id": tale.worker(2), "status": "running"}
            ),
        }


def changes(story: Story) -> Iterator[Values]:
    """Yield the feed; what a person did is one row in five hundred."""
    number = 0
    for tale in story.tales():
        if tale.number % FEED:
            continue
        person = tale.number % (100 * FEED) == 0
        verb = ACTS[tale.mix % 4] if person else "claim"
        for what, status, at in (
            (verb, JobStatus.RUNNING, tale.created),
            ("end", tale.status, tale.ended(1)),
        ):
            number += 1
            yield {
                "id": number,
                "at": moment(at),
                "writer": number,
                "verb": what,
                "jobs": json.dumps([[tale.id, status.value]]),
                "actor": "ada" if person and what == verb else "",
                "reason": "asked for by the customer" if person and what == verb else "",
            }


def minutes(story: Story) -> Iterator[Values]:
    """Yield what the workers counted: the writes of each minute, and the times that its jobs took."""
    end = story.now.replace(second=0, microsecond=0)
    counted = Counter[tuple[int, str, str, str, int]]()
    for tale in story.tales():
        minute = int((end - tale.created).total_seconds() // 60)
        for point in ("claim", "commit", *(("renew", "fail") if tale.mix % 20 == 0 else ())):
            for word in ("checked", "accepted"):
                counted[minute, f"fence.{point}.{word}", "", "", 0] += 1
        bucket = BUCKETS[5 + tale.mix % 8]
        counted[minute, "due_to_commit", tale.queue, tale.kind, bucket] += 1
        counted[minute, "due_to_commit", "", "", bucket] += 1
        if tale.mix % 20 == 0:
            counted[minute, "retries" if tale.mix % 3 else "failed", "", "", 0] += 1
        if tale.number % REFUSED == 0:
            counted[minute, "refused.commit.GENERATION", "", "", 0] += 1
            counted[minute, "recovered.pending", tale.queue, tale.kind, 0] += 1
            counted[minute, "recovered.pending", "", "", 0] += 1
        if tale.matter:
            counted[minute, "fence.uncertain.accepted", "", "", 0] += 1
    kept = Counter[tuple[datetime, str, str, str, int]]()
    for (back, measure, queue, kind, bucket), n in counted.items():
        at = end - timedelta(minutes=back)
        kept[at, measure, queue, kind, bucket] += n
        if not queue:
            kept[hour_of(at), HOURLY + measure, "", "", bucket] += n
    for number, ((at, measure, queue, kind, bucket), n) in enumerate(kept.items(), start=1):
        row: dict[str, Any] = {"id": number, "minute": moment(at), "measure": measure}
        row |= {"queue": queue, "kind": kind, "bucket": bucket}
        yield row | {"count": n, "total": float(n * bucket)}
