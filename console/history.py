"""What people did to one job, from the feed: who, when, why."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max
from django.utils.translation import gettext as _

from console import moves, wording
from jobs.models import AuditEntry, Change, Job

WINDOW = 50_000
"""The feed has no index by job: only so many of its newest rows are looked at."""
SHOWN = 30
READ = 500


@dataclass(frozen=True)
class Act:
    """One thing that a person did."""

    at: datetime
    actor: str
    verb: str
    reason: str
    icon: str


ICONS = {
    "cancel": "cancelled",
    "force_cancel": "cancelled",
    "retry": "refresh",
    "hold": "lock",
    "unhold": "lock",
}


def said(verb: str) -> str:
    """Return a verb of the feed as the past of a sentence whose subject is a person."""
    return {
        "cancel": _("asked for a cancel"),
        "force_cancel": _("force-cancelled it"),
        "retry": _("retried it"),
        "revise": _("revised its input"),
        "hold": _("put it on hold"),
        "unhold": _("lifted the hold"),
        "raise_epoch": _("raised the epoch"),
        "propose_raise": _("asked a second person to raise the epoch"),
        "reject_raise": _("declined to raise the epoch"),
        "open_claims": _("opened claims"),
        "close_claims": _("closed claims"),
        "pause_queue": _("paused a queue"),
        "resume_queue": _("resumed a queue"),
        "fence_worker": _("fenced a worker"),
        "quarantine": _("put jobs into quarantine"),
        "ruling_rule": _("ruled on it"),
        "ruling_propose": _("asked a second person for a ruling"),
        "ruling_approve": _("approved a ruling"),
        "ruling_reject": _("rejected what was asked for"),
        "enrol_second_factor": _("enrolled a second factor"),
        "remove_second_factor": _("removed their own second factor"),
        "reset_second_factor": _("took a second factor away"),
        "reveal": _("revealed what is hidden"),
        "take": _("took the case"),
        "give_back": _("gave the case back"),
        "park": _("parked the case"),
        "unpark": _("brought the case back"),
        "inquire": _("asked the provider"),
        "plan": _("planned a mass action"),
        "execute_plan": _("executed a mass action"),
        "abort_plan": _("stopped a mass action"),
        "issue_token": _("issued an API token"),
        "revoke_token": _("revoked an API token"),
    }.get(verb, verb)


def of(job: Job) -> list[Act]:
    """Return what people did to the job, newest first."""
    newest = Change.objects.aggregate(newest=Max("id"))["newest"]
    if newest is None:
        return []
    rows = (
        Change.objects.filter(id__gt=newest - WINDOW, at__gte=job.created_at)
        .exclude(actor="")
        .order_by("-id")[:READ]
    )
    return acts([row for row in rows if any(entry and entry[0] == job.id.hex for entry in row.jobs)][:SHOWN])


def last(job: Job, now: datetime) -> str:
    """Return the newest change of the job in a sentence; empty where it is not known."""
    for row in Change.objects.filter(at__gte=job.created_at).order_by("-id")[:READ]:
        if any(entry and entry[0] == job.id.hex for entry in row.jobs):
            return _sentence(row.actor, row.verb, row.at, now)
    return ""


def since(ids: Sequence[uuid.UUID], moment: datetime, now: datetime) -> dict[uuid.UUID, str]:
    """Return of each of these jobs what was done to it last after `moment`, where that is known.

    What people do is in the audit by job; of all else the newest `READ` rows of the feed are looked at.
    """
    if not ids:
        return {}
    wanted = {str(job_id): job_id for job_id in ids}
    found: dict[uuid.UUID, tuple[datetime, str, str]] = {}
    for row in Change.objects.order_by("-id")[:READ]:
        for name, *_status in row.jobs:
            job_id = wanted.get(str(uuid.UUID(name)))
            if job_id and row.at > moment:
                found.setdefault(job_id, (row.at, row.actor, row.verb))
    entries = AuditEntry.objects.filter(object_type="job", object_id__in=wanted, at__gt=moment)
    for at, actor, action, text in entries.order_by("-seq").values_list("at", "actor", "action", "object_id")[
        :READ
    ]:
        if wanted[text] not in found or found[wanted[text]][0] < at:
            found[wanted[text]] = (at, actor, action)
    return {job_id: _sentence(actor, verb, at, now) for job_id, (at, actor, verb) in found.items()}


def _sentence(actor: str, verb: str, at: datetime, now: datetime) -> str:
    told = {"who": actor, "what": said(verb) if actor else moves.said(verb), "at": wording.clock(at, now)}
    return (_("%(who)s %(what)s at %(at)s.") if actor else _("At %(at)s: %(what)s.")) % told


def acts(changes: Sequence[Change]) -> list[Act]:
    """Return rows of the feed as acts."""
    return [Act(c.at, c.actor, said(c.verb), c.reason, ICONS.get(c.verb, "user")) for c in changes]
