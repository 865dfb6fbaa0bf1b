"""The durable job runtime: ledger × vocabulary × hooks (contract §10).

Every verb is set-based; one job is a list of one. A verb that loses writes nothing and says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobs import measures
from jobs.failpoints import failpoint
from jobs.ledger import claim as claims
from jobs.ledger import epoch as scheduler
from jobs.ledger import fence, recover, renew, settle, timeline
from jobs.ledger.session import Session, transact
from jobs.ledger.settle import Ended
from jobs.outcomes import Code, Ending, Lease, Outcome
from jobs.recovery import NotOurs, Recovery
from jobs.status import TERMINAL, JobStatus

KINDS_PER_CLAIM = 100
"""More kinds than this are offered in turns: each is one branch of the claim's head."""


class DurableJobRuntime(Recovery):
    """Claims, renews, ends and recovers the rows of one table."""

    # -- claim ------------------------------------------------------------------------------------------

    def current_epoch(self) -> int:
        """Return the epoch that a worker must present from now on."""
        return transact(
            lambda s: scheduler.read(s).epoch,
            using=self.using,
            vocabulary=self.vocabulary,
            durable=False,
            fenced=False,
        )

    def claim(
        self,
        *,
        worker_id: str,
        queues: Sequence[str] = ("",),
        kinds: Sequence[str] = ("",),
        max_claims: int = 1,
        ttl: int | None = None,
        epoch: int | None = None,
        traceparent: str = "",
        now: datetime | None = None,
    ) -> list[Lease]:
        """Take up to `max_claims` due jobs for `worker_id`, trying `queues` in the order given.

        `kinds` are the kinds this worker knows; `ttl` caps the lease, in seconds; `traceparent` is the trace
        of the claim, for its attempts. An empty list means "nothing for me now": nothing due, claims or
        queues closed, an old epoch, a fenced worker.
        Never touches expired rows: the loop recovers first (contract §5).
        """
        if self.vocabulary.has("kind") and not kinds:
            return []
        if timeline.moved(self.using):
            return []
        epoch = self.current_epoch() if epoch is None else epoch
        ttl = ttl or self.lease_seconds

        def work(session: Session) -> list[Lease]:
            if now is not None:
                claims.promote(session, limit=1000)
            taken: list[Lease] = []
            for queue in queues:
                if len(taken) < max_claims:
                    taken += claims.claim_queue(
                        session,
                        queue=queue,
                        kinds=kinds[:KINDS_PER_CLAIM],
                        worker=worker_id,
                        epoch=epoch,
                        limit=max_claims - len(taken),
                        ttl=ttl,
                    )
            if taken:
                self.hooks.claimed(session, taken, traceparent=traceparent)
            failpoint("claim.sent")
            return taken

        taken = self._transact(work, now)
        measures.count("claims")
        if not taken:
            measures.count("claims_empty")
        self._checked("claim", len(taken), len(taken))
        return taken

    def claim_job(
        self,
        job_id: Any,
        *,
        worker_id: str,
        ttl: int | None = None,
        epoch: int | None = None,
        expected_state_version: int | None = None,
        now: datetime | None = None,
    ) -> Lease | None:
        """Take one job by id: a due one, or an expired one whose ending would be `pending` (direct takeover).

        Where *Endings* would give something else for an expired row, that ending is performed and None is
        returned. None also means: not due, closed, held, cancelled, or not at `expected_state_version`.
        """
        if timeline.moved(self.using):
            return None
        epoch = self.current_epoch() if epoch is None else epoch
        ttl = ttl or self.lease_seconds
        recovered: list[Ended] = []

        def work(session: Session) -> list[Lease]:
            recovered.clear()  # the whole transaction may be run again
            key = session.key(job_id)
            session.lock([key])
            if expected_state_version is not None and not self._at_version(
                session, key, expected_state_version
            ):
                return []
            expired = recover.pick_expired(session, limit=1, only=key)
            if expired:
                taken = claims.claim_id(
                    session, job_id, worker=worker_id, epoch=epoch, ttl=ttl, takeover=True
                )
                if not taken:
                    recovered.extend(self._end_expired(session, expired, unless_pending=True))
                    return []
                # Taken back and claimed at once: never pending, and a retry all the same.
                recovered.extend(
                    Ended(lease.job_id, JobStatus.PENDING, None, lease.queue, lease.kind, entry.overdue)
                    for lease, entry in zip(taken, expired, strict=True)
                )
                self.hooks.lost(
                    session, [e.attempt_id for e in expired], [key], error_code="LEASE_TIMEOUT_RECOVERED"
                )
            else:
                claims.promote_id(session, job_id)
                taken = claims.claim_id(session, job_id, worker=worker_id, epoch=epoch, ttl=ttl)
            if taken:
                self.hooks.claimed(session, taken)
            failpoint("claim.sent")
            return taken

        try:
            taken = self._transact(work, now)
        except NotOurs:
            taken = []
        self._checked("claim", 1, len(taken))
        self._count_recovered(recovered)
        return taken[0] if taken else None

    # -- the holder's verbs -------------------------------------------------------------------------------

    def renew(
        self, leases: Sequence[Lease], *, ttl: int | None = None, now: datetime | None = None
    ) -> list[Outcome]:
        """Extend leases, all in one statement; outcomes in the order given.

        RENEWED carries the new end. CANCELLED carries the new cancel number and extends nothing; renew again
        with `lease.told_cancel(number)` on the way to a safe point. FENCED: the lease is lost, stop. BUSY:
        somebody holds the row for the moment, ask again soon.
        """
        if _name_a_job_twice(leases):
            return [outcome for lease in leases for outcome in self.renew([lease], ttl=ttl, now=now)]

        def work(session: Session) -> list[Outcome]:
            tokens = [lease.token() | {"ttl": ttl or lease.ttl_seconds} for lease in leases]
            free = renew.lock_free(session, [t["id"] for t in tokens])
            renewed = renew.renew(session, [t for t in tokens if t["id"] in free])
            failpoint("renew.sent")
            outcomes = []
            for token in tokens:
                if token["id"] in renewed:
                    outcomes.append(Outcome(Code.RENEWED, lease_expires_at=renewed[token["id"]]))
                elif token["id"] not in free and fence.read_row(session, token["id"]) is not None:
                    outcomes.append(Outcome(Code.BUSY))
                else:
                    outcomes.append(self._refuse(session, token, "renew"))
            return outcomes

        return self._judge("renew", leases, work, now)

    def stage(self, lease: Lease, text: str, digest: str, *, now: datetime | None = None) -> Outcome:
        """Keep `text` (canonical JSON) as the attempt's result without making it the job's."""

        def work(session: Session) -> list[Outcome]:
            token = lease.token()
            session.lock([token["id"]])
            if not settle.may_stage(session, [token]):
                return [self._refuse(session, token, "stage")]
            settle.stage_attempts(
                session, [{"attempt_id": lease.attempt_id, "result": text, "result_digest": digest}]
            )
            return [Outcome(Code.STAGED, result_digest=digest)]

        return self._judge("stage", [lease], work, now)[0]

    def may_stage(self, lease: Lease, *, now: datetime | None = None) -> Outcome:
        """Tell whether a result would be staged now: asked for files, which are no part of a transaction."""

        def work(session: Session) -> list[Outcome]:
            token = lease.token()
            session.lock([token["id"]])
            if settle.may_stage(session, [token]):
                return [Outcome(Code.STAGED)]
            return [self._refuse(session, token, "stage")]

        return self._judge("stage", [lease], work, now)[0]

    def commit(
        self,
        results: Sequence[tuple[Lease, str | None, str]],
        *,
        logs: dict[Any, str] | None = None,
        now: datetime | None = None,
    ) -> list[Outcome]:
        """Make each (lease, result text or None if staged, digest) its job's one canonical result.

        COMMITTED, also with `replay` when this very commit had landed before. FENCED with the first broken
        predicate, CANCELLED and STALE_INPUT write nothing: acknowledge or release next.
        """
        leases = [lease for lease, _, _ in results]
        if _name_a_job_twice(leases):
            return [outcome for result in results for outcome in self.commit([result], logs=logs, now=now)]

        def work(session: Session) -> list[Outcome]:
            logs_of = logs or {}
            tokens = [
                {
                    **lease.token(),
                    "result": text,
                    "result_digest": digest,
                    "log": logs_of.get(lease.attempt_id),
                }
                for lease, text, digest in results
            ]
            rows = session.encode("leases", tokens)
            session.lock([t["id"] for t in tokens])
            landed = settle.commit(session, rows)
            if landed:
                winners = [t for t in tokens if t["id"] in landed]
                if len(winners) < len(tokens):
                    rows = session.encode("leases", winners)
                self.hooks.committed(session, [t["id"] for t in winners], rows)
            failpoint("commit.sent")
            # Many no-op jobs share one result, and so one outcome.
            done = {
                digest: Outcome(Code.COMMITTED, status=JobStatus.SUCCEEDED, result_digest=digest)
                for digest in {t["result_digest"] for t in tokens}
            }
            return [
                done[t["result_digest"]] if t["id"] in landed else self._refuse(session, t, "commit")
                for t in tokens
            ]

        return self._count_ended("commit", leases, self._judge("commit", leases, work, now))

    def end(self, endings: Sequence[Ending], *, now: datetime | None = None) -> list[Outcome]:
        """Give jobs up: fail, release, wait, skip, uncertain, acknowledge_cancel; outcomes in order.

        LANDED carries the status that *Endings* decided, which a cancel request, a passed deadline, a used
        budget or an open effect may have overruled.
        """
        outcomes: dict[int, Outcome] = {}
        for verb in dict.fromkeys(e.verb for e in endings):
            batch = [(i, e) for i, e in enumerate(endings) if e.verb == verb]
            answers = self._end_verb(verb, [e for _, e in batch], now)
            outcomes.update(zip((i for i, _ in batch), answers, strict=True))
        return [outcomes[i] for i in range(len(endings))]

    def _end_verb(self, verb: str, endings: Sequence[Ending], now: datetime | None) -> list[Outcome]:
        fenced_by = "acknowledge_cancel" if verb == "acknowledge_cancel" else "end"
        leases = [e.lease for e in endings]
        if _name_a_job_twice(leases):
            return [outcome for ending in endings for outcome in self._end_verb(verb, [ending], now)]

        def work(session: Session) -> list[Outcome]:
            rows = {e.lease.job_id: _row(e) for e in endings}
            session.lock(list(rows))
            landed = {e.id: e for e in settle.end(session, list(rows.values()), fenced_by=fenced_by)}
            if landed:
                self.hooks.ended(session, list(landed.values()), rows, verb=verb)
            failpoint("fail.sent")
            return [
                Outcome(Code.LANDED, status=landed[e.lease.job_id].status)
                if e.lease.job_id in landed
                else self._refuse(session, e.lease.token(), fenced_by, ending=e)
                for e in endings
            ]

        return self._count_ended(verb, leases, self._judge(verb, leases, work, now))

    def promote(self, *, limit: int = 1000, now: datetime | None = None) -> list[str]:
        """Make up to `limit` jobs claimable whose time has come; returns the queues they are in."""
        return self._transact(lambda s: claims.promote(s, limit=limit), now)

    @staticmethod
    def _count_ended(verb: str, leases: Sequence[Lease], outcomes: list[Outcome]) -> list[Outcome]:
        """Count what the jobs that have ended took, the attempts of each; and the failures: those after which
        the job goes on to another attempt, and those that were its last.

        A release and a wait are no retries: they cost no attempt. A lost lease is counted by recovery.
        """
        sums: dict[str, list[int]] = {}
        retries = failed = 0
        for lease, outcome in zip(leases, outcomes, strict=True):
            if not outcome.landed or outcome.replay:
                continue
            retries += verb == "fail" and outcome.status == JobStatus.PENDING
            failed += outcome.status == JobStatus.FAILED
            if outcome.status in TERMINAL:
                entry = sums.setdefault(lease.kind, [0, 0])
                entry[0] += 1
                entry[1] += lease.attempt_count
        measures.count("retries", retries)
        measures.count("failed", failed)
        for kind, (jobs, attempts) in sums.items():
            measures.count("attempts", jobs, kind=kind, total=attempts)
        return outcomes

    def _at_version(self, session: Session, key: Any, version: int) -> bool:
        rows = session.run("SELECT {state_version} FROM {table} WHERE {id} = %(id)s", id=key)
        return bool(rows) and rows[0][0] == version


def _name_a_job_twice(leases: Sequence[Lease]) -> bool:
    """Tell whether a batch holds two leases of one job: its worker lost it and claimed it again.

    In one statement the two would share one answer, and the lost one would be told that it had landed.
    """
    return len({lease.job_id for lease in leases}) < len(leases)


def _row(ending: Ending) -> dict[str, Any]:
    return ending.lease.token() | {
        "wish": ending.wish,
        "retry": int(ending.retry),
        "excused": int(ending.excused),
        "bump": 0,
        "forced": 0,
        "delay": ending.delay,
        "at_once": int(not ending.delay and ending.delay is not None),
        "wait_reason": ending.wait_reason,
        "wait_total": ending.wait_total,
        "error_code": ending.error_code,
        "error_message": ending.error_message,
        "spent_code": ending.spent_code,
        "reference": ending.reference,
        "effect_id": ending.effect_id,
        "conflict": ending.conflict,
        "matter": int(ending.conflict is not None),
        "traceback": ending.traceback,
        "log": ending.log,
    }
