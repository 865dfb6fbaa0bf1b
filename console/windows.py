"""Read-only windows on the ledger's tables: Django admin's lists and forms, without any way to write.

A list counts no big table and looks up nothing but what it offers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from console import wording
from console.bounded import BoundedPaginator
from console.payload import Payload
from jobs.models import ApiToken, Attempt, Change, EffectSlot, FenceRefusal, Minute, Queue, Scheduler, Worker
from jobs.redact import MASK

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[models.Model]
else:
    ModelAdmin = admin.ModelAdmin


class Window(ModelAdmin):
    """A table that may be looked at by whoever has its view permission, and written by nobody."""

    actions = None
    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 0
    sortable_by: ClassVar[Any] = ()
    preserve_filters = False
    payloads: tuple[str, ...] = ()
    """Fields that hold JSON of a job: shown with the job's secrets masked."""
    newest_first: ClassVar[str] = "-pk"
    titled: ClassVar[Any]
    """What the menu calls it."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes."""
        return False

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Nothing can be looked up: no index serves it, and an odd value is an error of the database."""
        return False

    def get_urls(self) -> list[URLPattern]:
        """Serve the list and one row; there is nothing to add, delete or tell the history of."""
        label, name = self.opts.app_label, self.opts.model_name
        view = self.admin_site.admin_view
        return [
            path("", view(self.changelist_view), name=f"{label}_{name}_changelist"),
            path("<path:object_id>/change/", view(self.change_view), name=f"{label}_{name}_change"),
        ]

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Newest first, by the key: an order that no index serves would sort the table."""
        return (self.newest_first,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave out long texts where only the list is shown."""
        rows = super().get_queryset(request)
        if request.resolver_match and str(request.resolver_match.url_name).endswith("_changelist"):
            long = [f.name for f in self.opts.fields if isinstance(f, models.TextField)]
            return rows.defer(*long)
        return rows

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Use the list that sorts by nothing but the key."""
        return _KeyOrdered

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Say ids, workers and instants as everywhere in the console."""
        return [self._column(name, short=True) for name in self.list_display]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Show every field, JSON of jobs masked."""
        return [self._column(f.name, short=False) for f in self.opts.fields]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """All of them."""
        return self.get_fields(request, obj)

    def _column(self, name: Any, *, short: bool) -> Any:
        """Return what shows a field: its name, or a function where the admin would say it otherwise."""
        field = next((f for f in self.opts.fields if name in (f.name, f.attname)), None)
        if field is None:
            return name
        say = _masked if name in self.payloads else _SAY.get(type(field)) if name != "worker_id" else _worker
        return name if say is None else _shown(name, field.verbose_name, say, short)


class _KeyOrdered(ChangeList):
    """A list ordered by the model admin's own order alone: a second one would need a sort of the table."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return list(self.model_admin.get_ordering(request))


def _shown(name: str, label: Any, say: Callable[[Any, Any, bool], str], short: bool) -> Any:
    @admin.display(description=label)
    def show(row: Any) -> str:
        value = getattr(row, name)
        return "-" if value in (None, "") else say(row, value, short)

    show.__name__ = name
    return show


def _moment(_row: Any, value: datetime, _short: bool) -> str:
    return wording.stamp(value)


def _id(_row: Any, value: Any, short: bool) -> str:
    return wording.short_id(value) if short else str(value)


def _related(_row: Any, value: Any, short: bool) -> str:
    return _id(_row, getattr(value, "pk", value), short)


def _worker(_row: Any, value: str, short: bool) -> str:
    return wording.short_worker(value) if short else value


def _masked(row: Any, value: str, _short: bool) -> str:
    from jobs import effect_kinds, handlers

    # A window on attempts shows what belongs to the job as a whole.
    kind = getattr(row, "kind", effect_kinds.IMPLICIT)
    job = row.job
    secrets = handlers.secrets_of(job.kind, job.input)
    payload = Payload.of(value, effect_kinds.hidden_paths(kind, job.kind), secrets)
    depth, said = 0, []
    for line in payload.lines:
        depth -= line.closes
        said.append(f"{'  ' * depth}{line.key}{line.text or MASK}")
        depth += line.opens
    return "\n".join(said)


_SAY: dict[type[models.Field[Any, Any]], Callable[[Any, Any, bool], str]] = {
    models.DateTimeField: _moment,
    models.UUIDField: _id,
    models.ForeignKey: _related,
}


class AttemptWindow(Window):
    """Every physical execution."""

    titled = _("Attempts")
    list_display = (
        "id",
        "job_id",
        "generation",
        "status",
        "worker_id",
        "error_code",
        "started_at",
        "finished_at",
    )
    payloads = ("result",)


class EffectSlotWindow(Window):
    """Every action on the outside world."""

    titled = _("Effects")
    list_display = ("id", "job_id", "slot", "kind", "status", "replay", "grants", "changed_at")
    payloads = ("payload", "conflict_payload", "response")


class ChangeWindow(Window):
    """The feed: one row for each statement."""

    titled = _("Changes")
    list_display = ("id", "at", "verb", "actor", "reason", "writer")


class MinuteWindow(Window):
    """Counts by minute."""

    titled = _("Minutes")
    list_display = ("id", "minute", "measure", "queue", "kind", "bucket", "count", "total")


class RefusalWindow(Window):
    """Refused writes as they were kept."""

    titled = _("Refused writes")
    list_display = ("id", "at", "job_id", "point", "reason", "worker_id")


class WorkerWindow(Window):
    """Workers as they wrote themselves down."""

    titled = _("Workers")
    list_display = ("id", "beat_at", "running", "concurrency", "scheduler_epoch", "stopped_at", "fenced_at")


class QueueWindow(Window):
    """Queues that somebody said something about."""

    titled = _("Queues")
    list_display = ("name", "paused_at", "paused_until", "paused_by", "pause_reason")
    newest_first = "name"


class SchedulerWindow(Window):
    """The one row."""

    titled = _("Scheduler")
    list_display = ("id", "epoch", "claims_open", "changed_at", "changed_by")


class ApiTokenWindow(Window):
    """Callers of the API. Of a token its first characters are shown; its digest stays hidden."""

    titled = _("API tokens")
    list_display = ("name", "user", "prefix", "expires_at", "revoked_at", "last_used_at")
    list_select_related = ("user",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """All but the digest."""
        return [name for name in super().get_fields(request, obj) if name != "digest"]


WINDOWS: dict[type[models.Model], type[Window]] = {
    Attempt: AttemptWindow,
    EffectSlot: EffectSlotWindow,
    Change: ChangeWindow,
    Minute: MinuteWindow,
    FenceRefusal: RefusalWindow,
    Worker: WorkerWindow,
    Queue: QueueWindow,
    Scheduler: SchedulerWindow,
    ApiToken: ApiTokenWindow,
}


def open_all() -> None:
    """Register every window; safe to call again."""
    from console.site import site

    for model, window in WINDOWS.items():
        if not site.is_registered(model):
            site.register(model, window)
