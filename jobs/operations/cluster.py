"""What a person does to the whole cluster: the epoch, claims, queues, one worker.

One function for every door: it asks for its permission and uses its verb, which writes and audits in one
transaction. `actor` is a Django user; the doors say through which of them he came (audit.through).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, OperationalError
from django.utils.translation import gettext as _

from jobs.ledger import holders
from jobs.manager import JobManager
from jobs.models import Job
from jobs.operations.actor import FENCE, PAUSE, RAISE, admit
from jobs.outcomes import Refused

Result = TypeVar("Result")
HIGHEST_FLOOR = 2**52
"""Half of what the audit chain can write (canon.MAX_SAFE_INTEGER): after it the epoch can still be raised."""


def takes_two() -> bool:
    """Return whether a raise of the epoch takes a second person here."""
    return bool(settings.INTERLOCK["RAISE_SECOND_PERSON"])


def raise_epoch(
    *,
    actor: Any,
    expected: int,
    reason: str,
    floor: int = 0,
    close_claims: bool = False,
    using: str = DEFAULT_DB_ALIAS,
) -> int:
    """Refuse every older claim; asks a recent log-in. Returns the new epoch.

    Raises Refused EPOCH_MOVED, SCHEDULER_HELD, and RAISE_NEEDS_SECOND where it takes two people
    (jobs/operations/raising.py).
    """
    by = admit(actor, RAISE, recent=True).signature
    if takes_two():
        raise Refused("RAISE_NEEDS_SECOND")
    claims_open = False if close_claims else None
    return unless_held(
        lambda verbs: verbs.raise_epoch(
            expected=expected, floor=floor, claims_open=claims_open, actor=by, reason=reason
        ),
        using,
    )


def close_claims(*, actor: Any, reason: str, using: str = DEFAULT_DB_ALIAS) -> bool:
    """Stop every claim; False when they were closed."""
    by = admit(actor, RAISE).signature
    return unless_held(lambda verbs: verbs.close_claims(actor=by, reason=reason), using)


def open_claims(*, actor: Any, reason: str, seen: str | None = None, using: str = DEFAULT_DB_ALIAS) -> bool:
    """Let workers claim again, with `seen` only as they were seen closed; False when they could."""
    by = admit(actor, RAISE).signature
    return unless_held(lambda verbs: verbs.open_claims(actor=by, reason=reason, seen=seen), using)


def pause_queue(
    name: str,
    *,
    actor: Any,
    reason: str,
    until: datetime | None = None,
    seen: str | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> None:
    """Stop claims of one queue, for good or until an instant; its running jobs go on.

    With `seen` it replaces the pause of that mark only, or with an empty one none.
    """
    by = admit(actor, PAUSE).signature
    unless_held(lambda verbs: verbs.pause_queue(name, until=until, actor=by, reason=reason, seen=seen), using)


def resume_queue(
    name: str, *, actor: Any, reason: str, seen: str | None = None, using: str = DEFAULT_DB_ALIAS
) -> bool:
    """Open one queue again, with `seen` only the pause of that mark; False when it was open."""
    by = admit(actor, PAUSE).signature
    return unless_held(lambda verbs: verbs.resume_queue(name, actor=by, reason=reason, seen=seen), using)


def fence_worker(worker_id: str, *, actor: Any, reason: str, using: str = DEFAULT_DB_ALIAS) -> int:
    """Refuse one worker for good and end its leases; returns how many."""
    by = admit(actor, FENCE).signature
    return unless_held(lambda verbs: verbs.fence_worker(worker_id, actor=by, reason=reason), using)


def unless_held(verb: Callable[[JobManager], Result], using: str = DEFAULT_DB_ALIAS) -> Result:
    """Use a verb that wants the scheduler for itself; a time-out becomes a refusal that names the holders."""
    try:
        return verb(Job.objects.db_manager(using))
    except OperationalError as error:
        if not holders.held_up(error):
            raise
        found = holders.holders(using)
        raise Refused("SCHEDULER_HELD", who=_named(found), pids=[holder.pid for holder in found]) from error


def _named(found: list[holders.Holder]) -> str:
    if not found:
        return _("it has ended meanwhile, or this database does not tell whose it was")
    text = _("process %(pid)s (%(application)s, %(user)s %(address)s), %(state)s, open for %(seconds).1f s")
    return "; ".join(
        text
        % {
            "pid": holder.pid,
            "application": holder.application or "?",
            "user": holder.user,
            "address": holder.address or _("local"),
            "state": holder.state,
            "seconds": holder.seconds,
        }
        for holder in found
    )
