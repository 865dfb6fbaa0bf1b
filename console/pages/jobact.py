"""What a person does to one job, each on a page of its own: cancel, retry, revise, hold."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console import actforms, history, moves, wording
from console.pages.act import Act, Effect
from console.payload import Payload
from jobs import handlers
from jobs.explain import explain_many
from jobs.models import EffectSlot, Job
from jobs.operations import jobwork, reveal
from jobs.operations.actor import VIEW_PAYLOAD
from jobs.outcomes import Refused
from jobs.redact import mask
from jobs.status import OPEN_EFFECT, TERMINAL, EffectStatus, HoldReason, JobStatus

CHILDREN = 1000
"""Children that are counted for a sentence; of more, the bound is told."""


class JobAct(Act):
    """One verb on one job."""

    template_name = "console/act/job.html"
    name: ClassVar[str]
    permission: ClassVar[str]
    form_class: ClassVar[Any] = actforms.JobForm

    @cached_property
    def job(self) -> Job:
        """The job that the address names."""
        job_id: uuid.UUID = self.kwargs["job_id"]
        found: Job | None = Job.objects.filter(pk=job_id).first()
        if found is None:
            raise Http404(_("There is no job %(job_id)s.") % {"job_id": job_id})
        return found

    @cached_property
    def slots(self) -> dict[str, int]:
        """How many of the job's effects are in each status, of its present revision and of former ones."""
        rows = EffectSlot.objects.filter(job=self.job).order_by("status")
        return dict(rows.values_list("status").annotate(n=Count("pk")))

    @property
    def open_slots(self) -> int:
        """How many effects may have happened or may still happen."""
        return sum(self.slots.get(status, 0) for status in OPEN_EFFECT)

    def page(self) -> dict[str, Any]:
        """Return the job as it stands, beside what the act says of itself."""
        return super().page() | {
            "job": self.job,
            "why": explain_many([self.job], around=self.around)[0],
        }

    def title(self) -> str:
        return f"{self.verb}: {self.job.label or self.job.kind}"

    def closed(self) -> str:
        if self.name in moves.by_people(self.job):
            return ""
        return _("The job's status is “%(status)s”; its page shows what it can become.") % {
            "status": wording.words()[self.job.status]
        }

    def seen(self) -> dict[str, Any]:
        return {"version": self.job.state_version}

    def moved(self, refused: Refused) -> str:
        return history.last(self.job, self.around.now)

    def back_url(self) -> str:
        return reverse("admin:job", args=[self.kwargs["job_id"]])

    def family(self) -> list[Effect]:
        """Return what becomes of the job's children."""
        children = Job.objects.filter(parent=self.job).exclude(status__in=TERMINAL)
        count = len(children.values_list("pk")[: CHILDREN + 1])
        if not count:
            return []
        text = ngettext(
            "%(n)s child that has not ended is cancelled with it, and what hangs on that one.",
            "%(n)s children that have not ended are cancelled with it, and what hangs on them.",
            count,
        )
        return [Effect("n-queues", text % {"n": count if count <= CHILDREN else f"{CHILDREN}+"})]

    def holder(self) -> str:
        """Return who runs it, as people know a worker."""
        return wording.short_worker(self.job.worker_id or "?")


def _unreversed() -> Effect:
    return Effect(
        "send", _("Whatever has left us already is not reversed: a cancel undoes nothing outside."), "warn"
    )


class Cancel(JobAct):
    """End the job, or ask who runs it to stop."""

    name, permission, icon, dear = "cancel", "jobs.cancel_job", "cancelled", True
    verb = gettext_lazy("Cancel the job")

    def effects(self) -> list[Effect]:
        job = self.job
        if job.status == JobStatus.RUNNING:
            first = [
                Effect(
                    "running",
                    _("%(worker)s is asked to stop. The job runs on until its code acknowledges that.")
                    % {"worker": self.holder()},
                    "st-run c",
                )
            ]
        elif self.open_slots or job.status == JobStatus.UNCERTAIN:
            first = [
                Effect(
                    "uncertain",
                    _("It is noted only: the job stays uncertain until its open effect is settled."),
                    "st-unk c",
                )
            ]
        else:
            first = [
                Effect("cancelled", _("The job ends now. No worker takes it, until somebody retries it."))
            ]
        return [*first, *self.family(), _unreversed()]

    def act(self, data: dict[str, Any]) -> None:
        after = jobwork.cancel(
            self.job.id, actor=self.request.user, reason=data["reason"], seen_version=data["version"]
        )
        if after == JobStatus.CANCELLED:
            self.tell(_("Cancelled."))
        elif after == JobStatus.RUNNING:
            self.tell(
                _("The cancel is asked for. It is not cancelled yet: whoever runs it has to acknowledge."),
                messages.WARNING,
            )
        else:
            self.tell(
                _("The cancel is noted. It is not cancelled yet: the open effect has to be settled first."),
                messages.WARNING,
            )


class ForceCancel(JobAct):
    """Take the job away from whoever runs it."""

    name, permission, icon, dear, recent = "force_cancel", "jobs.force_cancel_job", "fence", True, True
    verb = gettext_lazy("Force cancel")

    def effects(self) -> list[Effect]:
        found = []
        if self.job.status == JobStatus.RUNNING:
            found += [
                Effect(
                    "fence",
                    _("The job is taken from %(worker)s now. Whatever that attempt still writes is refused.")
                    % {"worker": self.holder()},
                    "bad",
                ),
                Effect(
                    "running",
                    _("Its code may still be running, and may still send something: this stops no process."),
                    "warn",
                ),
            ]
        if self.open_slots:
            text = ngettext(
                "%(n)s outside effect is open: the job stays uncertain, and it becomes a case.",
                "%(n)s outside effects are open: the job stays uncertain, and each becomes a case.",
                self.open_slots,
            )
            found.append(Effect("unknown", text % {"n": self.open_slots}, "unk"))
        else:
            found.append(Effect("cancelled", _("No outside effect is open: the job ends as cancelled.")))
        return [*found, *self.family(), _unreversed(), Effect("warn", _("It takes effect at once."), "warn")]

    def act(self, data: dict[str, Any]) -> None:
        after = jobwork.force_cancel(
            self.job.id, actor=self.request.user, reason=data["reason"], seen_version=data["version"]
        )
        if after == JobStatus.CANCELLED:
            self.tell(_("Taken away and cancelled. Its code may still be running."))
        else:
            self.tell(
                _("Taken away. It is uncertain, not cancelled: the open effect is in the inbox now."),
                messages.WARNING,
            )


class Retry(JobAct):
    """Bring an ended job back."""

    name, permission, icon = "retry", "jobs.retry_job", "refresh"
    verb = gettext_lazy("Retry")
    form_class = actforms.RetryForm

    def effects(self) -> list[Effect]:
        job = self.job
        text = ngettext(
            "The job becomes pending with a fresh budget of %(n)s attempt. A worker may take it at once.",
            "The job becomes pending with a fresh budget of %(n)s attempts. A worker may take it at once.",
            job.max_attempts,
        )
        found = [Effect("pending", text % {"n": job.max_attempts})]
        if done := self.slots.get(EffectStatus.COMMITTED, 0):
            text = ngettext(
                "%(n)s effect that took place answers from its record and is not sent again.",
                "%(n)s effects that took place answer from their record and are not sent again.",
                done,
            )
            found.append(Effect("committed", text % {"n": done}, "ok"))
        if unsent := sum(self.slots.get(s, 0) for s in (EffectStatus.PREPARED, EffectStatus.ABSENT)):
            text = ngettext(
                "%(n)s effect may be sent, under its old key.",
                "%(n)s effects may be sent, each under its old key.",
                unsent,
            )
            found.append(Effect("send", text % {"n": unsent}))
        if not self.slots:
            found.append(
                Effect("info", _("No outside effect is on record: its code runs again from the top."))
            )
        if (pause := self.around.paused.get(job.queue)) is not None:
            text = _("Queue %(queue)s is paused by %(by)s, so that it does not start before that ends.")
            found.append(Effect("pause", text % {"queue": job.queue, "by": pause.paused_by}, "warn"))
        if job.hold_reason:
            found.append(
                Effect("lock", _("It is on hold, so that nobody takes it before that is lifted."), "warn")
            )
        return found

    def act(self, data: dict[str, Any]) -> None:
        after = jobwork.retry(
            self.job.id,
            actor=self.request.user,
            reason=data["reason"],
            seen_version=data["version"],
            deadline_at=data["deadline_at"],
        )
        self.tell(_("Retried: it is %(status)s now.") % {"status": wording.words()[after]})


class Revise(JobAct):
    """Give the job another input."""

    name, permission, icon = "revise", "jobs.revise_job", "page"
    verb = gettext_lazy("Revise the input")

    @cached_property
    def shown_input(self) -> str | None:
        """The input to start from; None where a secret is in it, which no form may carry to a browser."""
        handler = handlers.find(self.job.kind)
        text = actforms.indented(self.job.input)
        plain = json.loads(self.job.input)
        secret = mask(plain, handler.redact if handler else ()) != plain
        return None if secret or len(text) > actforms.EDITED else text

    def fresh(self) -> Any:
        return actforms.ReviseForm(
            initial=self.seen() | {"arguments": self.shown_input or ""}, committed=self.committed
        )

    def form(self) -> Any:
        return actforms.ReviseForm(self.request.POST, committed=self.committed)

    @property
    def committed(self) -> bool:
        """Whether something took place that the new input may contradict."""
        return EffectStatus.COMMITTED in self.slots

    def effects(self) -> list[Effect]:
        job = self.job
        found = [
            Effect(
                "page",
                _("The whole input is replaced; the job is at revision %(n)s then.")
                % {"n": job.revision + 1},
            )
        ]
        if self.shown_input is None:
            text = _("Secrets in the input are not shown here, or it is too long: type all of it anew.")
            found.append(Effect("lock", text, "warn"))
        if job.status == JobStatus.RUNNING:
            text = _("%(worker)s is told that its input is stale; the job runs again with the new one.")
            found.append(Effect("released", text % {"worker": self.holder()}))
        elif job.status in TERMINAL:
            text = _("It stays %(status)s. Retry it afterwards to run it with the new input.")
            found.append(Effect(job.status, text % {"status": wording.words()[job.status]}))
        if self.committed:
            text = _("Effects have taken place under the old input; say below what becomes of them.")
            found.append(Effect("committed", text, "warn"))
        return found

    def act(self, data: dict[str, Any]) -> None:
        revision = jobwork.revise(
            self.job.id,
            data["arguments"],
            actor=self.request.user,
            reason=data["reason"],
            seen_version=data["version"],
            effects=data.get("effects", ""),
        )
        self.tell(_("Revised: it is at revision %(n)s now.") % {"n": revision})


class Hold(JobAct):
    """Keep the job from being claimed."""

    name, permission, icon = "hold", "jobs.hold_job", "lock"
    verb = gettext_lazy("Hold")

    def effects(self) -> list[Effect]:
        found = [Effect("lock", _("No worker takes it until somebody lifts the hold."))]
        if self.job.status == JobStatus.RUNNING:
            text = _("%(worker)s runs on, but its result is not accepted while the hold lasts.")
            found.append(Effect("running", text % {"worker": self.holder()}, "st-run c"))
        if self.job.deadline_at:
            found.append(Effect("clock", _("Its deadline runs on, and ends the job when it passes."), "warn"))
        return found

    def act(self, data: dict[str, Any]) -> None:
        done = jobwork.hold(
            self.job.id, actor=self.request.user, reason=data["reason"], seen_version=data["version"]
        )
        self.tell(_("On hold.") if done else _("It was on hold already; nothing was changed."))


class Unhold(JobAct):
    """Lift a hold."""

    name, permission, icon = "unhold", "jobs.hold_job", "play"
    verb = gettext_lazy("Lift the hold")

    def effects(self) -> list[Effect]:
        found = [Effect("pending", _("If it is due, a worker may take it at once."))]
        if self.job.hold_reason == HoldReason.QUARANTINE:
            text = _(
                "It is in quarantine: after a failover nobody knows whether it has acted outside. Look first."
            )
            found.append(Effect("warn", text, "warn"))
        if self.job.hold_reason == HoldReason.CONTRADICTION:
            text = _("It is held because evidence contradicts what was recorded; that case stays open.")
            found.append(Effect("contradiction", text, "bad"))
        return found

    def act(self, data: dict[str, Any]) -> None:
        done = jobwork.unhold(
            self.job.id, actor=self.request.user, reason=data["reason"], seen_version=data["version"]
        )
        self.tell(_("The hold is lifted.") if done else _("There was no hold; nothing was changed."))


class Reveal(JobAct):
    """Show what is hidden of the job's input and result, on this one page."""

    name, permission, icon = "reveal", VIEW_PAYLOAD, "search"
    template_name = "console/act/reveal.html"
    form_class = actforms.ReasonForm
    verb = gettext_lazy("Reveal")

    def closed(self) -> str:
        return ""

    def seen(self) -> dict[str, Any]:
        return {}

    def effects(self) -> list[Effect]:
        return [
            Effect("n-record", _("Input and result are shown on one page, nothing masked, to you alone.")),
            Effect("chain", _("The audit keeps that you saw them, when, and why.")),
        ]

    def act(self, data: dict[str, Any]) -> HttpResponse:
        found = reveal.reveal(self.job.id, actor=self.request.user, reason=data["reason"])
        shown = {
            "revealed": True,
            "form": None,
            "input": Payload.revealed(found.input),
            "result": None if found.result is None else Payload.revealed(found.result),
        }
        return self.whole(shown)


VERBS: dict[str, type[JobAct]] = {a.name: a for a in (Hold, Unhold, Retry, Revise, Cancel, ForceCancel)}
"""What moves a job, or may."""
ACTS = VERBS | {Reveal.name: Reveal}


@dataclass(frozen=True)
class Button:
    """One way to an act's page, for who may do it."""

    verb: Any
    icon: str
    url: str
    dear: bool


def buttons(job: Job, user: Any) -> list[Button]:
    """Return what this person may do to the job as it is, gentlest first."""
    return [
        Button(act.verb, act.icon, reverse(f"admin:job-{name.replace('_', '-')}", args=[job.id]), act.recent)
        for name in moves.by_people(job)
        if user.has_perm((act := VERBS[name]).permission)
    ]
