"""What people did to one job, from the feed: who, when, why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max
from django.utils.translation import gettext as _

from console import moves, wording
from jobs.models import Change, Job

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
            at = wording.clock(row.at, now)
            if row.actor:
                return _("%(who)s %(what)s at %(at)s.") % {"who": row.actor, "what": said(row.verb), "at": at}
            return _("At %(at)s: %(what)s.") % {"what": moves.said(row.verb), "at": at}
    return ""


def acts(changes: Sequence[Change]) -> list[Act]:
    """Return rows of the feed as acts."""
    return [Act(c.at, c.actor, said(c.verb), c.reason, ICONS.get(c.verb, "user")) for c in changes]
