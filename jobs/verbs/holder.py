"""What a worker does with one job: claim, renew, stage, commit, and the other endings (contract §4, §5)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from jobs import admission
from jobs.ledger.settle import Ended
from jobs.outcomes import Ending, Lease, Outcome
from jobs.status import WaitReason
from jobs.verbs.base import Verbs

LONGEST_LEASE = int(timedelta(days=1).total_seconds())
"""A claim asks for the job's own lease, which its kind declared; this is no bound of its own."""


class HolderVerbs(Verbs):
    """The holder's verbs, for one job; workers use the set-based ones of `runtime`."""

    def claim(
        self,
        *,
        worker_id: str,
        queues: Sequence[str],
        kinds: Sequence[str],
        max_claims: int = 1,
        ttl: int | None = None,
        epoch: int | None = None,
        now: datetime | None = None,
    ) -> list[Lease]:
        """Take up to `max_claims` due jobs; see DurableJobRuntime.claim."""
        return self.runtime.claim(
            worker_id=worker_id,
            queues=queues,
            kinds=kinds,
            max_claims=max_claims,
            ttl=ttl or LONGEST_LEASE,
            epoch=epoch,
            now=now,
        )

    def claim_job(
        self, job_id: uuid.UUID, *, worker_id: str, now: datetime | None = None, **more: Any
    ) -> Lease | None:
        """Take one job by id, also by takeover of an expired lease; see DurableJobRuntime.claim_job."""
        more.setdefault("ttl", LONGEST_LEASE)
        return self.runtime.claim_job(job_id, worker_id=worker_id, now=now, **more)

    def renew(self, lease: Lease, *, now: datetime | None = None) -> Outcome:
        """Extend one lease; workers renew all of theirs at once with `runtime.renew`."""
        return self.runtime.renew([lease], now=now)[0]

    def stage(self, lease: Lease, result: Any, *, now: datetime | None = None) -> Outcome:
        """Keep a result for one attempt, fenced, without making it the job's (contract §5)."""
        text, digest = admission.result(result)
        return self.runtime.stage(lease, text, digest, now=now)

    def commit(
        self,
        lease: Lease,
        result: Any = None,
        *,
        staged_digest: str | None = None,
        now: datetime | None = None,
    ) -> Outcome:
        """Make `result`, or the staged one of `staged_digest`, the job's one canonical result."""
        if staged_digest is not None:
            return self.runtime.commit([(lease, None, staged_digest)], now=now)[0]
        text, digest = admission.result(result)
        return self.runtime.commit([(lease, text, digest)], now=now)[0]

    def commit_many(
        self, results: Sequence[tuple[Lease, Any]], *, now: datetime | None = None
    ) -> list[Outcome]:
        """Commit many results in one statement; outcomes in order, each judged alone."""
        prepared = [(lease, *admission.result(value)) for lease, value in results]
        return self.runtime.commit(prepared, now=now)

    def fail(
        self,
        lease: Lease,
        error_code: str,
        message: str = "",
        *,
        retry_after: float | None = None,
        now: datetime | None = None,
    ) -> Outcome:
        """End the attempt as failed. `retry_after` seconds overrides what the code's registry entry says."""
        return self._end(admission.failure(lease, error_code, message, retry_after=retry_after), now)

    def release(self, lease: Lease, *, now: datetime | None = None) -> Outcome:
        """Give the job back unharmed; costs no attempt."""
        return self._end(Ending.release(lease), now)

    def wait(
        self,
        lease: Lease,
        reason: WaitReason = WaitReason.TIMER,
        *,
        seconds: float | None = None,
        now: datetime | None = None,
    ) -> Outcome:
        """Give the lease up until `seconds` from now; an approval has no due time."""
        return self._end(
            Ending.wait(lease, reason, seconds=seconds, total=admission.longest_wait(lease.kind)), now
        )

    def skip(
        self, lease: Lease, error_code: str, message: str = "", *, now: datetime | None = None
    ) -> Outcome:
        """End the job as skipped: there is nothing to do."""
        return self._end(Ending.skip(lease, error_code, admission.words(lease, message)), now)

    def uncertain(
        self, lease: Lease, note: str, *, reference: str = "", now: datetime | None = None
    ) -> Outcome:
        """Stop because nobody knows whether an outside effect took place."""
        note, reference = admission.words(lease, note), admission.words(lease, reference)
        return self._end(Ending.uncertain(lease, note, reference=reference), now)

    def acknowledge_cancel(self, lease: Lease, *, now: datetime | None = None) -> Outcome:
        """Stop because a cancel was requested."""
        return self._end(Ending.acknowledge_cancel(lease), now)

    def _end(self, ending: Ending, now: datetime | None) -> Outcome:
        return self.runtime.end([ending], now=now)[0]

    def recover(self, *, limit: int = 200, now: datetime | None = None) -> list[Ended]:
        """Take back expired leases and end what is past its deadline; see DurableJobRuntime.recover."""
        return self.runtime.recover(limit=limit, now=now)
