"""One job: why it is where it is, its attempts in time, its effects, what was refused, what people did."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.db.models import F
from django.db.models.functions import Length, Right
from django.http import Http404
from django.urls import reverse
from django.utils.translation import gettext as _

from console import history, machine, moves, timeline
from console.pages import jobact
from console.pages.base import Page
from console.pages.jobs import marks_of, rows
from console.pages.refusals import shown
from console.payload import Payload
from jobs import errors, handlers, search
from jobs.errors import ErrorCode
from jobs.explain import explain_many
from jobs.models import Attempt, Case, EffectSlot, FenceRefusal, Job, Worker
from jobs.models.case import CaseKind
from jobs.status import TERMINAL, JobStatus

ATTEMPTS, EFFECTS, REFUSALS, CHILDREN = 20, 50, 20, 20
TEXT = 8000
"""Characters of a traceback or log on this page; the attempt's own window has all of it."""
SHOWN = [
    "id",
    "job_id",
    "generation",
    "revision",
    "worker_id",
    "scheduler_epoch",
    "status",
    "started_at",
    "staged_at",
    "finished_at",
    "result_digest",
    "error_code",
    "error_message",
    "beats",
    "progress_done",
    "progress_total",
    "progress_note",
]


@dataclass(frozen=True)
class Card:
    """One attempt as its card shows it."""

    attempt: Any
    number: int
    error: ErrorCode | None
    refused: int
    open: bool
    committed: bool
    log_lines: int
    worker: Worker | None = None
    """Whose it was, while its row is kept."""

    @property
    def percent(self) -> int | None:
        """How far it got, where it said so."""
        done, total = self.attempt.progress_done, self.attempt.progress_total
        return None if done is None or not total or total < 0 else max(0, min(100, 100 * done // total))


@dataclass(frozen=True)
class About:
    """What a kind says of itself. Never the handler: a template calls what it can, and would run the job."""

    owner: str
    runbook: str
    timeout: float | None


class JobPage(Page):
    """All that is known of one job."""

    template_name = "console/job/page.html"
    folder = "console/job"
    regions = ("job",)

    @cached_property
    def subject(self) -> Job:
        """The job that the address names."""
        job_id: uuid.UUID = self.kwargs["job_id"]
        found: Job | None = (
            Job.objects.select_related("parent").defer("parent__input").filter(pk=job_id).first()
        )
        if found is None:
            raise Http404(_("There is no job %(job_id)s.") % {"job_id": job_id})
        return found

    def page(self) -> dict[str, Any]:
        """Return the title and the way back."""
        return {"title": self.subject.label or self.subject.kind, "subject": self.subject}

    def job(self) -> dict[str, Any]:
        """Return everything; a job that has ended refreshes seldom."""
        job, now = self.subject, self.around.now
        attempts = self._attempts()
        slots = list(EffectSlot.objects.filter(job=job).order_by("created_at", "id")[:EFFECTS])
        refusals = list(FenceRefusal.objects.filter(job_id=job.id).order_by("-id")[:REFUSALS])
        numbers = {a.id: n for n, a in self._numbered(attempts)}
        children = list(Job.objects.filter(parent=job).defer("input").order_by("-id")[: CHILDREN + 1])
        handler = handlers.find(job.kind)
        paths = handler.redact if handler else ()
        committed = self._committed(attempts)
        found = self._cases()
        leads = moves.of(job)
        doubted = any(case.kind == CaseKind.UNKNOWN for case in found.values())
        return {
            "job": job,
            "tag_url": f"{reverse('admin:jobs')}?tag=",
            "found_by": _found_by(job, handler),
            "why": explain_many([job], around=self.around)[0],
            "marks": marks_of([job.id])[job.id],
            "since": _since(job, attempts),
            "about": About(handler.owner, handler.runbook, handler.timeout) if handler else None,
            "error": errors.lookup(job.error_code),
            "timeline": timeline.draw(job, attempts, slots, refusals, now),
            "cards": self._cards(attempts, refusals),
            "attempts_shown": ATTEMPTS,
            "slots": [(s, numbers.get(s.granted_attempt_id), found.get(s.id)) for s in slots],
            "refusals": shown(refusals),
            "input": Payload.of(job.input, paths),
            "result": Payload.of(committed.result, paths, handlers.secrets_of(job.kind, job.input))
            if committed and committed.result is not None
            else None,
            "result_attempt": committed,
            "children": rows(children[:CHILDREN], self.around) if children else [],
            "more_children": len(children) > CHILDREN,
            "moves": leads,
            "machine": machine.draw(job, attempts, doubted, leads),
            "buttons": jobact.buttons(job, self.request.user),
            "open_case": next((c for c in found.values() if c.closed_at is None), None),
            "acts": history.of(job),
            "ended": job.status in TERMINAL,
        }

    def _attempts(self) -> list[Any]:
        """Return the newest attempts, oldest first, with the ends of their long texts."""
        newest = (
            Attempt.objects.filter(job=self.subject)
            .only(*SHOWN)
            .annotate(
                log_end=Right("log", TEXT),
                log_length=Length("log"),
                trace_end=Right("traceback", TEXT),
                trace_length=Length("traceback"),
                result_length=Length(F("result")),
            )
            .order_by("-generation")[:ATTEMPTS]
        )
        return list(newest)[::-1]

    def _cases(self) -> dict[str, Case]:
        """Return each effect's case: the newest one, an open one before it."""
        order = (F("closed_at").desc(nulls_first=True), "-id")
        rows = (
            Case.objects.filter(job=self.subject)
            .order_by(*order)
            .only("id", "effect_id", "kind", "closed_at")
        )
        cases: dict[str, Case] = {}
        for case in rows[:EFFECTS]:
            cases.setdefault(case.effect_id, case)
        return cases

    def _numbered(self, attempts: list[Any]) -> list[tuple[int, Any]]:
        before = max(self.subject.attempt_count, len(attempts)) - len(attempts)
        return list(enumerate(attempts, start=before + 1))

    def _cards(self, attempts: list[Any], refusals: list[FenceRefusal]) -> list[Card]:
        """Return the attempts, newest first, the newest one open."""
        cards: list[Card] = []
        whose = Worker.objects.filter(pk__in={a.worker_id for a in attempts}).only("id", "version", "beat_at")
        workers = {worker.id: worker for worker in whose}
        for number, attempt in self._numbered(attempts)[::-1]:
            cards.append(
                Card(
                    attempt,
                    number,
                    errors.lookup(attempt.error_code),
                    sum(r.attempt_id == attempt.id for r in refusals),
                    open=not cards,
                    committed=attempt.id == self.subject.result_commit_id,
                    log_lines=len(attempt.log_end.splitlines()),
                    worker=workers.get(attempt.worker_id),
                )
            )
        return cards

    def _committed(self, attempts: list[Any]) -> Attempt | None:
        if self.subject.result_commit_id is None:
            return None
        return Attempt.objects.only("id", "result", "result_digest", "generation", "finished_at").get(
            pk=self.subject.result_commit_id
        )


def _found_by(job: Job, handler: handlers.Handler | None) -> list[tuple[str, str]]:
    """Return the arguments that lists find the job by, as they are typed, and where each leads."""
    found = search.read(handler.search, job.arguments) if handler and handler.search else {}
    typed = [f"{path}={value}" for path, value in found.items()]
    return [(text, f"{reverse('admin:jobs')}?{urlencode({'arg': text})}") for text in typed]


def _since(job: Job, attempts: list[Any]) -> datetime:
    """Return since when the job has been in its status, as far as its rows tell."""
    if job.finished_at is not None:
        return job.finished_at
    last = attempts[-1] if attempts else None
    if job.status == JobStatus.RUNNING and last is not None:
        moment: datetime = last.started_at
        return moment
    if last is not None and last.finished_at is not None:
        moment = last.finished_at
        return max(moment, job.created_at)
    return job.created_at
