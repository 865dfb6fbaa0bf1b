"""Adding work: an INSERT in the caller's own transaction (contract §3, §9 Keys)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jobs import admission, wake
from jobs.ledger import enqueue as inserts
from jobs.ledger import search
from jobs.ledger.session import Session, transact
from jobs.outcomes import Enqueued, InvalidJob, KeyConflict, Refused
from jobs.status import JobStatus
from jobs.verbs.base import Verbs
from jobs.vocabulary import JOB

if TYPE_CHECKING:
    from jobs.handlers import Options

BATCH = 1000
BATCH_BYTES = 8 * 1024 * 1024
"""One statement's rows and arguments: more would be one huge parameter."""


class EnqueueVerbs(Verbs):
    """Everybody's verb."""

    def enqueue(
        self,
        kind: str,
        arguments: Mapping[str, Any],
        *,
        options: Options | None = None,
        now: datetime | None = None,
    ) -> Enqueued:
        """Add one job in the caller's transaction: it exists exactly if that commits (contract §3).

        Returns the job's id; `created` is false when the unique key's job was there already with the same
        kind and input. Raises InvalidJob naming the field and the limit, KeyConflict when the key is held by
        another input, Refused PARENT_CANCELLED.
        """
        answer = self.enqueue_many([(kind, arguments, options)], now=now)[0]
        if isinstance(answer, KeyConflict):
            raise answer
        return answer

    def enqueue_many(
        self,
        calls: Iterable[tuple[str, Mapping[str, Any], Options | None]],
        *,
        unique_keys: Sequence[str | None] | None = None,
        now: datetime | None = None,
    ) -> list[Enqueued | KeyConflict]:
        """Add many jobs, all or none, in statements of a thousand; answers in the order given.

        `unique_keys` has the key of each call, or None for the one of its options: calls that share one
        Options object are judged together, which takes half the time. A held key with another input is
        answered by a KeyConflict in its place and stops nothing else.
        """
        rows = admission.rows(list(calls), unique_keys)
        answers: list[Enqueued | KeyConflict] = []
        if not rows:
            return answers

        def work(session: Session) -> list[Enqueued | KeyConflict]:
            self._check_parents(session, rows)
            done: list[Enqueued | KeyConflict] = []
            for part in _parts(rows):
                done += self._insert(session, part)
            wake.after_commit(self.db, {row["queue"] for row in rows})
            return done

        return transact(work, using=self.db, vocabulary=JOB, now=now, durable=False, fenced=False)

    def _insert(self, session: Session, rows: Sequence[dict[str, Any]]) -> list[Enqueued | KeyConflict]:
        created = inserts.insert(session, rows)
        left = [row for row in rows if row["id"] not in created]
        answers: dict[Any, Enqueued | KeyConflict] = {}
        for _ in range(3):
            if not left:
                break
            held = inserts.holders(session, left)
            again = []
            for row in left:
                holder = held.get(row["unique_key"])
                if holder is None:
                    again.append(row)  # the holder has ended meanwhile
                elif (holder.kind, holder.input_digest) == (row["kind"], row["input_digest"]):
                    answers[row["id"]] = Enqueued(uuid.UUID(holder.id), created=False)
                else:
                    answers[row["id"]] = KeyConflict(row["unique_key"], uuid.UUID(holder.id), holder.status)
            left = []
            if again:
                created |= inserts.insert(session, again)
                left = [row for row in again if row["id"] not in created]
        found_by = [row for row in rows if row["tags"] or row.get("attributes")]
        # Of those that went in: the job that a key led to keeps its own.
        search.lay(session, search.of_jobs([row for row in found_by if row["id"] in created]))
        if left:
            raise Refused("KEY_CONTENDED", key=left[0]["unique_key"])
        return [answers.get(row["id"]) or Enqueued(uuid.UUID(row["id"]), created=True) for row in rows]

    @staticmethod
    def _check_parents(session: Session, rows: Sequence[dict[str, Any]]) -> None:
        wanted = sorted({row["parent_id"] for row in rows if row["parent_id"]})
        if not wanted:
            return
        found = inserts.lock_parents(session, wanted)
        for parent_id in wanted:
            if parent_id not in found:
                raise InvalidJob("parent_id", f"there is no job {uuid.UUID(parent_id)}")
            status, cancel_requested = found[parent_id]
            if status == JobStatus.CANCELLED or cancel_requested:
                raise Refused("PARENT_CANCELLED", parent_id=str(uuid.UUID(parent_id)))


def _parts(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        size += len(row["input"])
        if part and (len(part) == BATCH or size > BATCH_BYTES):
            yield part
            part, size = [], len(row["input"])
        part.append(row)
    yield part
