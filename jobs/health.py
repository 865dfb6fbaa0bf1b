"""Whether the installation is well: each part examined once, for `manage.py health` and the probes.

An examination reads and says; it repairs nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.drills import kept
from jobs.ledger import epoch, metrics, triggers
from jobs.ledger.reading import reading
from jobs.ledger.session import Session
from jobs.metrics import SILENT_AFTER
from jobs.models import Queue, Worker
from jobs.models.drill import DrillKind, DrillVerdict

LATE = timedelta(minutes=5)
"""A due job that has waited longer deserves a look."""


class Level(IntEnum):
    """How bad it is; the worst one is the command's exit code."""

    OK = 0
    WARNING = 1
    BROKEN = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one part: a sentence for people, facts for machines."""

    part: str
    level: Level
    text: str
    facts: dict[str, Any] = field(default_factory=dict)


def examine(using: str = DEFAULT_DB_ALIAS, *, now: datetime | None = None) -> list[Finding]:
    """Examine every part; stops early where the rest cannot be asked. Raises no error of a database."""
    found = [database(using)]
    if found[-1].level == Level.OK:
        found.append(migrations(using))
    if found[-1].level == Level.OK:
        try:
            found += _installation(using, now)
        except Error as error:
            text = _("The database did not answer: %s") % type(error).__name__
            found.append(Finding("database", Level.BROKEN, text))
    return found


def database(using: str) -> Finding:
    """Ask the database for its version; what the driver says stays here, it may name hosts and users."""
    try:
        name = metrics.server(using)
        with connections[using].cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        connections[using].close()
        return Finding("database", Level.BROKEN, _("The database cannot be reached."))
    return Finding("database", Level.OK, name, {"server": name})


def migrations(using: str) -> Finding:
    """Compare the migrations on disk with those that were applied."""
    try:
        applied = MigrationRecorder(connections[using]).applied_migrations()
    except Error:
        return Finding("migrations", Level.BROKEN, _("The applied migrations cannot be read."))
    missing = [
        f"{app}.{name}"
        for (app, name), replaced in _on_disk().items()
        if (app, name) not in applied and not (replaced and replaced <= applied.keys())
    ]
    if missing:
        text = _("%(count)s not applied, %(first)s first: run manage.py migrate.") % {
            "count": len(missing),
            "first": missing[0],
        }
        return Finding("migrations", Level.BROKEN, text, {"missing": missing})
    return Finding("migrations", Level.OK, _("All applied."), {"missing": []})


@cache
def _on_disk() -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
    """Return every migration there is, and which ones it replaces; read once: probes ask often."""
    loader = MigrationLoader(None)
    return {key: frozenset(loader.disk_migrations[key].replaces) for key in sorted(loader.disk_migrations)}


def _installation(using: str, now: datetime | None) -> Iterator[Finding]:
    yield _triggers(using)
    yield _durability(using)
    with reading(using, now=now) as session:
        instant = session.clock()
        workers = list(Worker.objects.using(using).filter(stopped_at=None))
        live = [w for w in workers if instant - w.beat_at <= SILENT_AFTER and w.fenced_at is None]
        yield _scheduler(session, instant)
        yield _queues(session, instant, live, using)
        yield _workers(workers, instant)
        yield _leases(session, instant, live)
        yield _people(session)
        yield _drills(instant, using)


def _triggers(using: str) -> Finding:
    missing, strange = triggers.difference(using)
    facts = {"missing": missing, "unknown": strange}
    if missing:
        text = ngettext(
            "%(count)s guard is missing (%(names)s): run manage.py migrate, which lays it.",
            "%(count)s guards are missing (%(names)s): run manage.py migrate, which lays them.",
            len(missing),
        )
        return Finding(
            "triggers", Level.BROKEN, text % {"count": len(missing), "names": ", ".join(missing)}, facts
        )
    if strange:
        text = _("Guards of another version are present: %s") % ", ".join(strange)
        return Finding("triggers", Level.WARNING, text, facts)
    return Finding("triggers", Level.OK, _("All guards are in place."), facts)


def _durability(using: str) -> Finding:
    unsafe = metrics.unsafe_settings(using)
    if unsafe:
        text = _("The server may forget a commit, these are off: %s.") % ", ".join(sorted(unsafe))
        return Finding("durability", Level.WARNING, text, {"off": sorted(unsafe)})
    return Finding("durability", Level.OK, _("An acknowledged commit is kept."), {"off": []})


def _scheduler(session: Session, now: datetime) -> Finding:
    row = epoch.read(session)
    behind = (row.clock_high_water - now).total_seconds() if row.clock_high_water else 0.0
    facts = {"epoch": row.epoch, "claims_open": row.claims_open, "clock_behind_seconds": max(0.0, behind)}
    if behind > 1:
        text = _("Epoch %(epoch)s; the database's clock is %(behind).0f s behind where it has been.")
        return Finding("scheduler", Level.WARNING, text % {"epoch": row.epoch, "behind": behind}, facts)
    if not row.claims_open:
        text = _("Epoch %(epoch)s; claims are closed by %(by)s: %(reason)s")
        names = {"epoch": row.epoch, "by": row.changed_by, "reason": row.reason}
        return Finding("scheduler", Level.WARNING, text % names, facts)
    return Finding("scheduler", Level.OK, _("Epoch %s, claims open.") % row.epoch, facts)


def _queues(session: Session, now: datetime, live: list[Worker], using: str) -> Finding:
    paused = {
        queue.name
        for queue in Queue.objects.using(using).filter(paused_at__isnull=False)
        if queue.paused_until is None or queue.paused_until > now
    }
    facts, troubles, lines = [], [], []
    for entry in metrics.waiting(session):
        age = (now - entry.oldest_at).total_seconds() if entry.oldest_at else 0.0
        served = any(entry.queue in worker.queues or "*" in worker.queues for worker in live)
        facts.append(
            {
                "queue": entry.queue,
                "due": entry.depth,
                "oldest_seconds": age,
                "served": served,
                "paused": entry.queue in paused,
            }
        )
        shown = _("%(due)s due in %(queue)s, the oldest for %(age)s") % {
            "due": f"{entry.depth}+" if entry.depth >= metrics.BOUND else entry.depth,
            "queue": entry.queue,
            "age": _span(age),
        }
        if entry.queue in paused:
            shown += _(", which is paused")
        elif not served:
            shown += _(", which no live worker serves")
        lines.append(shown)
        troubles.append(entry.queue not in paused and (not served or age > LATE.total_seconds()))
    level = Level.WARNING if any(troubles) else Level.OK
    return Finding("queues", level, "; ".join(lines) or _("Nothing is due."), {"queues": facts})


def _workers(workers: list[Worker], now: datetime) -> Finding:
    workers = [worker for worker in workers if worker.fenced_at is None]  # of those nothing is expected
    silent = [worker for worker in workers if now - worker.beat_at > SILENT_AFTER]
    stuck = [worker.id for worker in workers if worker not in silent and _is_stuck(worker, now)]
    live = len(workers) - len(silent)
    facts = {"live": live, "silent": [worker.id for worker in silent], "stuck": stuck}
    if silent:
        oldest = min(worker.beat_at for worker in silent)
        text = _("%(live)s alive, %(silent)s silent, the longest for %(age)s.") % {
            "live": live,
            "silent": len(silent),
            "age": _span((now - oldest).total_seconds()),
        }
        return Finding("workers", Level.WARNING, text, facts)
    if stuck:
        return Finding("workers", Level.WARNING, _("A loop stands still in %s.") % ", ".join(stuck), facts)
    return Finding("workers", Level.OK, _("%s alive.") % live if live else _("None is running."), facts)


def _is_stuck(worker: Worker, now: datetime) -> bool:
    """Return whether a worker that beats has stopped looking for work: a loop died inside a live process."""
    passed = _instant(worker.passes.get("attend"))
    return passed is not None and now - passed > SILENT_AFTER


def _leases(session: Session, now: datetime, live: list[Worker]) -> Finding:
    held = metrics.running(session)
    expired = sum(entry.expired for entry in held)
    since = min((entry.expired_since for entry in held if entry.expired_since), default=None)
    looks = [moment for worker in live if (moment := _instant(worker.passes.get("attend")))]
    passes = [moment for worker in live if (moment := _instant(worker.passes.get("recover")))]
    facts = {
        "running": sum(entry.running for entry in held),
        "expired": expired,
        "expired_since": since,
        "last_look": max(looks, default=None),
        "last_recovery": max(passes, default=None),
    }
    if expired and not live:
        text = _("%s have run out, and no worker is alive to take them back.") % expired
        return Finding("leases", Level.WARNING, text, facts)
    if since is not None and now - since > SILENT_AFTER:
        text = _("%(expired)s have run out, the first %(age)s ago: recovery does not get at them.") % {
            "expired": expired,
            "age": _span((now - since).total_seconds()),
        }
        return Finding("leases", Level.WARNING, text, facts)
    text = _(
        "%(running)s held, %(expired)s run out; last looked %(look)s, last recovery pass %(recovery)s."
    ) % {
        "running": facts["running"],
        "expired": expired,
        "look": _ago(facts["last_look"], now),
        "recovery": _ago(facts["last_recovery"], now),
    }
    return Finding("leases", Level.OK, text, facts)


def _people(session: Session) -> Finding:
    uncertain, held = sum(metrics.uncertain(session).values()), metrics.held(session)
    facts = {"uncertain": uncertain, "held": held}
    text = _("%(uncertain)s uncertain, %(held)s on hold.") % {
        "uncertain": uncertain,
        "held": sum(held.values()),
    }
    # A hold that a person has placed is known to a person.
    waits = uncertain or held.keys() - {"operator"}
    return Finding("decisions", Level.WARNING if waits else Level.OK, text, facts)


def _drills(now: datetime, using: str) -> Finding:
    """Tell of the last zombie drill that shows something, and of a later one that shows nothing."""
    shown, newest = (find(DrillKind.ZOMBIE, using=using) for find in (kept.last_finished, kept.last))
    facts = {
        "last": shown and shown.finished_at,
        "verdict": shown and shown.verdict,
        "tried": shown and shown.tried,
        "refused": shown and shown.passed,
    }
    if shown is not None and shown.verdict == DrillVerdict.FAILED:
        text = _("A superseded worker was let in by the drill %s ago: see the console's page Drills.")
        return Finding("drill", Level.BROKEN, text % _span((now - shown.started_at).total_seconds()), facts)
    if newest is not None and newest != shown:
        if newest.finished_at is not None:
            text = _("The last zombie drill could not be carried out: %s.")
            return Finding("drill", Level.WARNING, text % newest.observed["note"], facts)
        if now - newest.started_at > LATE:
            text = _("The zombie drill that began %s ago was never finished.")
            ago = _span((now - newest.started_at).total_seconds())
            return Finding("drill", Level.WARNING, text % ago, facts)
    if shown is None:
        return Finding("drill", Level.OK, _("Never drilled: run manage.py zombie_drill."), facts)
    text = _("%(tried)s points refused a superseded worker, %(ago)s.")
    values = {"tried": shown.tried, "ago": _ago(shown.finished_at, now)}
    return Finding("drill", Level.OK, text % values, facts)


def _instant(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _ago(moment: Any, now: datetime) -> str:
    return _("%s ago") % _span((now - moment).total_seconds()) if moment else _("never")


def _span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
