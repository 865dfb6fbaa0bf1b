"""What a person does to queues, workers and the scheduler, each on a page that says first what it costs."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from django.contrib import messages
from django.http import Http404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console import actforms, wording
from console.pages.act import Act, Effect
from jobs.ledger import epoch
from jobs.models import Worker
from jobs.operations import cluster, exposure
from jobs.outcomes import Refused


class QueueAct(Act):
    """One verb on one queue, named in the address."""

    template_name = "console/act/queue.html"
    form_class: ClassVar[Any] = actforms.QueueForm

    @property
    def queue(self) -> str:
        """The queue that the form, or the address, names."""
        name: str = self.request.POST.get("queue", "") or self.request.GET.get("queue", "")
        if not name:
            raise Http404(_("The address names no queue."))
        return name

    @property
    def pause(self) -> Any:
        """Its pause, if it is paused."""
        return self.around.paused.get(self.queue)

    def page(self) -> dict[str, Any]:
        return super().page() | {"queue": self.queue, "pause": self.pause}

    def title(self) -> str:
        return f"{self.verb}: {self.queue}"

    def seen(self) -> dict[str, Any]:
        pause = self.pause
        if pause is None:
            return {"queue": self.queue, "seen": ""}
        facts = (pause.paused_by, pause.paused_at, pause.paused_until, pause.pause_reason)
        return {"queue": self.queue, "seen": epoch.mark(*facts)}

    def back_url(self) -> str:
        return reverse("admin:queues")


class PauseQueue(QueueAct):
    """Stop claims of one queue."""

    verb, icon = gettext_lazy("Pause the queue"), "pause"
    form_class = actforms.PauseForm

    def effects(self) -> list[Effect]:
        found = [
            Effect("pause", _("No worker takes a job from this queue any more.")),
            Effect("running", _("What runs already goes on to its end; nothing is lost."), "st-run c"),
            Effect("clock", _("Deadlines of the jobs that wait run on."), "warn"),
        ]
        if self.pause is not None:
            text = _("It is paused already, by %(by)s; yours replaces the reason and the end.")
            found.append(Effect("warn", text % {"by": self.pause.paused_by}, "warn"))
        return found

    def act(self, data: dict[str, Any]) -> None:
        until = self.form_sent.end(self.around.now)
        cluster.pause_queue(
            data["queue"],
            actor=self.request.user,
            reason=data["reason"],
            until=until,
            seen=data["seen"],
        )
        if until is None:
            self.tell(_("Queue %(queue)s is paused until a person resumes it.") % {"queue": data["queue"]})
        else:
            at = wording.stamp(until, seconds=False)
            self.tell(_("Queue %(queue)s is paused until %(at)s.") % {"queue": data["queue"], "at": at})

    def form(self) -> Any:
        self.form_sent = super().form()
        return self.form_sent


class ResumeQueue(QueueAct):
    """Open one queue again."""

    verb, icon = gettext_lazy("Resume the queue"), "play"

    def closed(self) -> str:
        return "" if self.pause is not None else _("The queue is open.")

    def effects(self) -> list[Effect]:
        return [
            Effect("play", _("Workers take its jobs again at once, all that are due.")),
            Effect("user", _("Whoever paused it may have had a reason that still stands: read it above.")),
        ]

    def act(self, data: dict[str, Any]) -> None:
        if cluster.resume_queue(
            data["queue"],
            actor=self.request.user,
            reason=data["reason"],
            seen=data["seen"],
        ):
            self.tell(_("Queue %(queue)s is open again.") % {"queue": data["queue"]})
        else:
            text = _("Queue %(queue)s was open already; nothing was changed.")
            self.tell(text % {"queue": data["queue"]}, messages.WARNING)


class FenceWorker(Act):
    """Refuse one worker for good."""

    template_name = "console/act/worker.html"
    form_class = actforms.WorkerForm
    verb, icon, dear = gettext_lazy("Fence the worker"), "fence", True

    @cached_property
    def worker(self) -> Worker:
        """The worker that the form, or the address, names."""
        key = self.request.POST.get("worker", "") or self.request.GET.get("worker", "")
        # One database refuses the very question whether it knows a name with U+0000.
        found: Worker | None = None if "\0" in key else Worker.objects.filter(pk=key).first()
        if found is None:
            raise Http404(_("There is no such worker."))
        return found

    def page(self) -> dict[str, Any]:
        return super().page() | {
            "worker": self.worker,
            "price": exposure.of_worker(self.worker.id, "default"),
        }

    def title(self) -> str:
        return f"{self.verb}: {wording.short_worker(self.worker.id)}"

    def closed(self) -> str:
        if self.worker.fenced_at is None:
            return ""
        at = wording.clock(self.worker.fenced_at, self.around.now)
        return _("%(by)s fenced it at %(at)s; a fence is for good.") % {"by": self.worker.fenced_by, "at": at}

    def effects(self) -> list[Effect]:
        return [
            Effect("fence", _("Every write of this worker is refused from now on, for good."), "bad"),
            Effect(
                "lost",
                _("Its leases end now. Others take its jobs back; each costs an attempt, maybe its last."),
                "warn",
            ),
            Effect(
                "unknown",
                _("What it is sending at this moment becomes unknown: inquiry first, then a case."),
                "unk",
            ),
            Effect(
                "running",
                _(
                    "A process that is alive hears of it within seconds and ends itself; one that hangs,"
                    " end on its machine. A new start is a new worker."
                ),
            ),
        ]

    def seen(self) -> dict[str, Any]:
        return {"worker": self.worker.id}

    def back_url(self) -> str:
        return reverse("admin:workers")

    def act(self, data: dict[str, Any]) -> None:
        ended = cluster.fence_worker(self.worker.id, actor=self.request.user, reason=data["reason"])
        text = ngettext(
            "Worker %(worker)s is fenced; %(n)s lease was ended.",
            "Worker %(worker)s is fenced; %(n)s leases were ended.",
            ended,
        )
        self.tell(text % {"worker": wording.short_worker(self.worker.id), "n": ended})


class SchedulerAct(Act):
    """One verb on the scheduler's row."""

    template_name = "console/act/scheduler.html"

    def title(self) -> str:
        return str(self.verb)

    def back_url(self) -> str:
        to = "admin:drain" if self.request.GET.get("from") == "drain" else "admin:scheduler"
        return reverse(to)

    def moved(self, refused: Refused) -> str:
        row = self.around.scheduler
        if row.changed_at is None:
            return ""
        at = wording.clock(row.changed_at, self.around.now)
        return _("%(by)s changed it at %(at)s: %(reason)s") % {
            "by": row.changed_by,
            "at": at,
            "reason": row.reason,
        }

    def page(self) -> dict[str, Any]:
        return super().page() | {"scheduler": self.around.scheduler}


class CloseClaims(SchedulerAct):
    """Let nothing new start."""

    verb, icon = gettext_lazy("Close claims"), "lock"

    def closed(self) -> str:
        return "" if self.around.scheduler.claims_open else _("Claims are closed.")

    def effects(self) -> list[Effect]:
        return [
            Effect("lock", _("No worker takes a job any more, from any queue.")),
            Effect("running", _("What runs already goes on to its end; nothing is lost."), "st-run c"),
            Effect("clock", _("Deadlines of the jobs that wait run on."), "warn"),
        ]

    def act(self, data: dict[str, Any]) -> None:
        done = cluster.close_claims(actor=self.request.user, reason=data["reason"])
        self.tell(_("Claims are closed.") if done else _("Claims were closed already; nothing was changed."))


class OpenClaims(SchedulerAct):
    """Let workers claim again."""

    verb, icon = gettext_lazy("Open claims"), "play"
    form_class = actforms.OpenForm

    def seen(self) -> dict[str, Any]:
        row = self.around.scheduler
        return {"seen": epoch.mark(row.changed_by, row.changed_at)}

    def closed(self) -> str:
        return "" if not self.around.scheduler.claims_open else _("Claims are open.")

    def effects(self) -> list[Effect]:
        return [
            Effect("play", _("Workers take jobs again at once, all that are due.")),
            Effect("user", _("Whoever closed them may have had a reason that still stands: read it above.")),
        ]

    def act(self, data: dict[str, Any]) -> None:
        done = cluster.open_claims(actor=self.request.user, reason=data["reason"], seen=data["seen"])
        self.tell(_("Claims are open.") if done else _("Claims were open already; nothing was changed."))
