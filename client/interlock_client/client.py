"""Jobs from outside: enqueue, look, wait, follow, cancel."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from interlock_client.transport import Transport

RESTING = frozenset({"succeeded", "failed", "cancelled", "skipped", "uncertain"})
"""Where a job stays until a person does something: `uncertain` waits for a ruling."""
WAIT = 30
BATCH = 1000


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the server told of it; `fields` holds all that it said."""

    id: uuid.UUID
    status: str
    state_version: int
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Job:
        return cls(uuid.UUID(body["id"]), body["status"], body["state_version"], body)

    @property
    def tags(self) -> Sequence[str]:
        """The tags that it was enqueued with, and those of its kind."""
        found: Sequence[str] = self.fields["tags"]
        return found

    @property
    def result(self) -> Any:
        """The result of a succeeded job, as far as this caller may see it."""
        return self.fields.get("result")


@dataclass(frozen=True, slots=True)
class Enqueue:
    """One job to add. `options` are members of the body, as `queue`, `delay`, `label` or `tags`."""

    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        return {"kind": self.kind, "arguments": dict(self.arguments), **self.options}


@dataclass(frozen=True, slots=True)
class Event:
    """One change: what was done (`verb`), by whom, to which jobs (id and status afterwards)."""

    cursor: str
    at: str
    verb: str
    actor: str
    reason: str
    jobs: Sequence[tuple[uuid.UUID, str]]


class Client:
    """One server as one token sees it; `url` ends in `/api/v1`. Usable by several threads.

    Whatever fails raises Problem with the server's answer, or NoAnswer; `outcome` of both says whether it was
    done. What may be sent again safely has been, for `patience` seconds.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 10.0, patience: float = 30.0) -> None:
        self.transport = Transport(url, token, timeout=timeout, patience=patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.transport.close()

    def enqueue(
        self,
        kind: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        traceparent: str = "",
        **options: Any,
    ) -> Job:
        """Add a job and return it; with the `key` of an earlier one, that one.

        Without a key one is made up, so that a lost answer adds nothing twice. Raises KeyConflict where the
        key's job has another input. `traceparent` is the trace (W3C) that the job is to belong to.
        """
        answer = self.transport.send(
            "POST",
            "jobs",
            Enqueue(kind, arguments or {}, options).body,
            repeatable=True,
            headers=_headers(key, traceparent),
        )
        return Job.of(answer.json())

    def enqueue_many(
        self, jobs: Sequence[Enqueue], *, key: str | None = None, traceparent: str = ""
    ) -> list[uuid.UUID | None]:
        """Add up to 1,000 jobs in one transaction; returns their ids in order, None for a key's conflict."""
        answer = self.transport.send(
            "POST",
            "jobs/batch",
            {"jobs": [job.body for job in jobs]},
            repeatable=True,
            headers=_headers(key, traceparent),
        )
        return [
            None if result["result"] == "conflict" else uuid.UUID(result["id"])
            for result in answer.json()["results"]
        ]

    def get(self, job_id: uuid.UUID | str) -> Job:
        """Return a job as it is."""
        return Job.of(self.transport.send("GET", f"jobs/{job_id}", repeatable=True).json())

    def wait(self, job_id: uuid.UUID | str, *, timeout: float = 60.0) -> Job:
        """Return a job once it has ended, or needs a person (`uncertain`). Raises TimeoutError."""
        end = time.monotonic() + timeout
        job = self.get(job_id)
        while job.status not in RESTING:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"job {job_id} is {job.status} after {timeout:g} s")
            wait = max(1, min(WAIT, int(left)))
            answer = self.transport.send(
                "GET",
                f"jobs/{job_id}",
                repeatable=True,
                params={"wait": wait},
                headers={"If-None-Match": f'"{job.state_version}"'},
                wait=wait,
            )
            if answer.content:
                job = Job.of(answer.json())
        return job

    def events(self, after: str | None = None, *, wait: int = WAIT) -> Iterator[Event]:
        """Yield changes as they come, for ever; `after` is the cursor of the last one seen, or `latest`."""
        while True:
            params = {"wait": wait} | ({} if after is None else {"after": after})
            page = self.transport.send("GET", "events", repeatable=True, params=params, wait=wait).json()
            for told in page["results"]:
                jobs = [(uuid.UUID(job["id"]), str(job["status"])) for job in told["jobs"]]
                yield Event(told["cursor"], told["at"], told["verb"], told["actor"], told["reason"], jobs)
            after = page["next"]

    def cancel(self, job_id: uuid.UUID | str, reason: str) -> bool:
        """Ask for a job's end; True when it is cancelled, False when it is asked for and somebody runs it."""
        answer = self.transport.send("POST", f"jobs/{job_id}/cancel", {"reason": reason}, repeatable=True)
        return bool(answer.json()["cancel"] == "cancelled")


def _headers(key: str | None, traceparent: str) -> dict[str, str]:
    headers = {"Idempotency-Key": uuid.uuid4().hex if key is None else key}
    return headers | ({"traceparent": traceparent} if traceparent else {})
