"""Filling an empty database with a large ledger: rows go in as they will be, past the verbs and guards."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management.color import no_style
from django.db import connection, models, transaction
from django.utils import timezone

from bench.console import beside, matters, rows
from bench.console.rows import Values
from bench.console.story import Story, Tale
from console import groups
from jobs import audit, canon
from jobs.drills import kept
from jobs.drills.zombie import PARTS
from jobs.ledger import raising, triggers
from jobs.ledger.session import Session, transact
from jobs.models import (
    ApiToken,
    Attempt,
    Case,
    Change,
    Comment,
    EffectSlot,
    Evidence,
    FenceRefusal,
    Job,
    Minute,
    Plan,
    PlanRow,
    Proposal,
    Queue,
    Ruling,
    Scheduler,
    SearchAttribute,
    Worker,
)  # fmt: skip
from jobs.models.audit import Source
from jobs.models.drill import DrillKind, DrillVerdict
from jobs.models.plan import PlanAction, PlanState, RowOutcome
from jobs.operations import exposure, plans, views
from jobs.operations.drills import replay_golden
from jobs.vocabulary import JOB

TABLES: tuple[tuple[type[models.Model], Callable[[Story], Iterator[Values]]], ...] = (
    (Worker, beside.workers),
    (Queue, beside.queues),
    (Job, rows.jobs),
    (SearchAttribute, rows.attributes),
    (Attempt, rows.attempts),
    (EffectSlot, matters.effects),
    (Case, matters.cases),
    (Evidence, matters.evidence),
    (Ruling, matters.rulings),
    (Comment, matters.comments),
    (Proposal, matters.proposals),
    (FenceRefusal, beside.refusals),
    (Change, beside.changes),
    (Minute, beside.minutes),
)
"""In the order in which one refers to the other."""
CHUNK = 5000
AUDITED = 200
PLANNED = 10_000


def fill(jobs: int, told: Callable[[str], None]) -> dict[str, int]:
    """Fill the database with so many jobs and what goes with them; returns how many rows each table has."""
    # Whole milliseconds: that is what an id keeps of the time.
    story = Story(jobs, timezone.now().replace(microsecond=0))
    with _unguarded():
        for model, values in TABLES:
            began = time.monotonic()
            with transaction.atomic():
                _write(model, values(story))
            told(f"{model._meta.db_table} filled in {time.monotonic() - began:.0f} s")
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), [model for model, _ in TABLES]):
            cursor.execute(statement)
    _people(story)
    return {model._meta.db_table: model._default_manager.count() for model, _ in TABLES}


def settle() -> None:
    """Leave the tables as they are where autovacuum has kept up, and their statistics current."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


@contextmanager
def _unguarded() -> Iterator[None]:
    """Take the guards off: each row is written once, in the state that the verbs would have brought it to.

    Constraints hold all the same.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            yield
            cursor.execute("SET session_replication_role = origin")
        return
    triggers.lift("default")
    yield
    triggers.lay("default")


def _write(model: type[models.Model], values: Iterator[Values]) -> None:
    """Write rows; a column that they do not name has its field's default."""
    base = {field.column: _plain(field) for field in model._meta.concrete_fields}
    names = ", ".join(f'"{name}"' for name in base)
    table = model._meta.db_table
    complete = ((base | row).values() for row in values)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in complete:
                    copy.write_row(tuple(row))
            return
        marks = ", ".join(["%s"] * len(base))
        while chunk := [list(row) for row in islice(complete, CHUNK)]:
            cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", chunk)


def _plain(field: Any) -> Any:
    value = field.get_default()
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return int(value) if isinstance(value, bool) else value


def _people(story: Story) -> None:
    """Let people do what they do: plans, views, tokens, drills, and a chain of audited acts."""
    groups.lay("default")
    ada = _person("ada")
    for n in range(20):
        _person(f"operator-{n:02}")
    for n in range(12):
        ApiToken.objects.issue(f"shop-{n}", user=ada, scopes=["jobs:read"], queues=[])
        views.keep("jobs", f"view {n}", "status=failed", actor=ada, shared=n % 2 == 0)
        views.keep("inbox", f"view {n}", "owner=nobody", actor=ada)
    _drills(ada)
    _audited(story)
    _plans(ada)
    _raise_asked()


def _person(name: str) -> Any:
    user = get_user_model().objects.create_user(name, is_staff=True)
    user.groups.set([Group.objects.get(name="admin")])
    return user


def _drills(actor: Any) -> None:
    """Replay the golden scenarios, and write what a zombie that was refused everywhere leaves."""
    replay_golden(actor=actor)
    said = {"refused": True, "reason": "GENERATION"}
    tries = [{"point": point, "part": part, **said} for point in beside.POINTS for part in PARTS]
    record = {"tries": tries, "jobs": [], "refusals": [], "note": ""}
    for _ in range(10):
        number = kept.begin(DrillKind.ZOMBIE, by="ada")
        kept.finish(number, DrillVerdict.PASSED, tried=len(tries), passed=len(tries), record=record)


def _raise_asked() -> None:
    """Let somebody ask for a raise of the epoch, at the price of now."""
    price = canon.canonical(exposure.of_all("default").document())
    asked: dict[str, Any] = {"by": "operator-00", "account": "0", "reason": "two owners", "seconds": 3600}

    def ask(session: Session) -> None:
        epoch = Scheduler.objects.get().epoch
        raising.propose(session, expected=epoch, floor=0, close_claims=True, price=price, **asked)

    transact(ask, using="default", vocabulary=JOB, durable=False)


def _audited(story: Story) -> None:
    for n in range(AUDITED):
        tale: Tale = story.tale(n * story.jobs // AUDITED)
        with transaction.atomic():
            audit.append(
                "default",
                action=beside.ACTS[n % 4],
                actor=matters.PEOPLE[n % 4],
                object_type="job",
                object_id=tale.id,
                reason="asked for by the customer",
                before={"status": "running", "state_version": n},
                after={"status": tale.status.value, "state_version": n + 1},
                source=Source.CONSOLE,
            )


def _plans(actor: Any) -> None:
    """Leave a few small plans, and one of the most jobs that a plan may have, half of them skipped."""
    failed = list(Job.objects.filter(status="failed").order_by("-id").values_list("id", flat=True)[:PLANNED])
    jobs = Job.objects.all()
    for n in range(8):
        plans.prepare(PlanAction.RETRY, jobs, actor=actor, reason="after the repair", ids=failed[n::40])
    plan = plans.prepare(PlanAction.RETRY, jobs, actor=actor, reason="all of them", ids=failed)
    now = timezone.now()
    skipped = PlanRow.objects.filter(plan=plan).order_by("id").values("id")[: plan.total // 2]
    PlanRow.objects.filter(id__in=skipped).update(
        outcome=RowOutcome.SKIPPED, code="VERSION", params={"seen": 3, "found": 4}, at=now
    )
    PlanRow.objects.filter(plan=plan, outcome=RowOutcome.PENDING).update(outcome=RowOutcome.DONE, at=now)
    Plan.objects.filter(pk=plan.pk).update(
        state=PlanState.DONE, done=plan.total - plan.total // 2, skipped=plan.total // 2, executor=actor,
        executed_by="ada", started_at=now - timedelta(minutes=1), ended_at=now,
    )  # fmt: skip
