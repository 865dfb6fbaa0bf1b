"""A cluster at work, made by the verbs: every status, rescued and fenced jobs, minutes of three hours.

    data.build()          what the browser tests and the pictures of the documentation look at

Instants are told in seconds before the moment it is built: what runs is running, what is silent is silent.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from jobs import handlers, redact
from jobs.drills import kept
from jobs.drills.zombie import PARTS
from jobs.handlers import Options
from jobs.ledger import settle
from jobs.ledger import worker as worker_rows
from jobs.ledger.clock import clock
from jobs.ledger.session import Session, transact
from jobs.measures import BUCKETS
from jobs.models import Job, Scheduler
from jobs.models.drill import DrillKind, DrillVerdict
from jobs.outcomes import Lease
from jobs.status import WaitReason
from jobs.vocabulary import JOB

QUEUES = ["payments", "mail", "render", "reports", "images"]
KINDS = [
    "ads.image_generate",
    "documents.render",
    "invoices.archive",
    "invoices.settle",
    "ledger.post",
    "mail.send",
    "payouts.transfer",
    "reports.monthly",
]
PAY_1 = "pay-1:2214:8d0c41f2"
PAY_7 = "pay-7:880:51aa9e03"
REN_4 = "ren-4:1377:c01e9b55"
MAIL_2 = "mail-2:641:77b0c9d1"
LOG = """\
{0} claimed from payments
{1} ledger balance read, 4,200.00 EUR open
{2} capture sent to the provider
{3} the provider closed the connection after 10.0 s"""
TRACEBACK = """\
Traceback (most recent call last):
  File "billing/ledger.py", line 88, in open_balance
    return self._get(f"/accounts/{account}/balance", timeout=5)
  File "billing/http.py", line 41, in _get
    raise LedgerUnavailable(response.status)
billing.errors.LedgerUnavailable: the ledger answers 503"""


TAGS = {
    "payouts.transfer": ["acquirer-2", "eu"],
    "invoices.settle": ["eu"],
    "documents.render": ["batch-2026-11", "eu", "farm-b", "letters", "paper-a4", "priority-customer"],
}


@dataclass
class Built:
    """Ids of the jobs worth looking at, by what they show."""

    now: datetime
    jobs: dict[str, uuid.UUID] = field(default_factory=dict)


class Builder:
    """Builds jobs at instants before `now`."""

    def __init__(self) -> None:
        self.now = clock()
        self.made = Built(self.now)

    def ago(self, seconds: float) -> datetime:
        """Return the instant so long before now."""
        return self.now - timedelta(seconds=seconds)

    def enqueue(self, kind: str, arguments: Mapping[str, Any], ago: float, **options: Any) -> uuid.UUID:
        """Enqueue one job that long ago."""
        usual = {"max_attempts": 5, "enqueued_by": "token billing-api"}
        given = Options(**{**usual, "tags": TAGS.get(kind, ()), **options})
        done = Job.objects.enqueue(kind, arguments, options=given, now=self.ago(ago))
        return uuid.UUID(str(done.job_id))

    def claim(self, job_id: uuid.UUID, worker: str, ago: float, ttl: int = 60) -> Lease:
        """Claim it that long ago."""
        lease = Job.objects.claim_job(job_id, worker_id=worker, ttl=ttl, now=self.ago(ago))
        assert lease is not None
        return lease

    def session(self, work: Callable[[Session], Any], ago: float = 0) -> Any:
        """Run ledger work that long ago."""
        return transact(work, using="default", vocabulary=JOB, now=self.ago(ago), durable=False, fenced=False)

    def note(self, lease: Lease, **values: Any) -> None:
        """Write beats, progress and log of a running attempt."""
        row = {"attempt_id": lease.attempt_id, "beats": 0, **values}
        for name in ("progress_done", "progress_total", "progress_note", "log"):
            row.setdefault(name, None)
        self.session(lambda s: settle.note_attempts(s, [row]))

    def worker(
        self, worker_id: str, queues: list[str], *, started: float, beat: float, **values: Any
    ) -> None:
        """Write a worker's row: started and last heard of that long ago."""
        host, pid, _ = worker_id.split(":")
        epoch = Scheduler.objects.get().epoch
        self.session(
            lambda s: worker_rows.register(
                s,
                id=worker_id,
                host=host,
                pid=int(pid),
                boot_id="b",
                pid_namespace="",
                pid_started=None,
                version="0.1.0",
                queues=queues,
                kinds=values.get("kinds", KINDS),
                concurrency=values.get("concurrency", 8),
                epoch=values.get("epoch", epoch),
            ),
            started,
        )
        passes = {
            name: self.ago(beat + n).isoformat() for n, name in enumerate(("claim", "recover", "promote"))
        }
        self.session(
            lambda s: worker_rows.beat(
                s,
                id=worker_id,
                running=values.get("running", 0),
                epoch=values.get("epoch", epoch),
                passes=passes,
                stopping=values.get("stopping", False),
                stopped=values.get("stopped", False),
            ),
            beat,
        )


def viewer() -> Any:
    """Return a new viewer with a password."""
    user = get_user_model().objects.create_user("viewer", password="a password", is_staff=True)
    user.groups.set([Group.objects.get(name="viewer")])
    return user


def register_kinds() -> None:
    """Tell this process two of the kinds: what they call a secret, whom to ask."""

    def settle_invoice(ctx: Any, invoice: str, **more: Any) -> None:
        """Settle an invoice."""

    def send(ctx: Any, to: str, **more: Any) -> None:
        """Send a letter."""

    settle_invoice.__qualname__ = "billing.settle"
    send.__qualname__ = "mail.send"
    handlers.job(
        "invoices.settle",
        queue="payments",
        redact=["card.number", "account.holder"],
        owner="billing",
        runbook="https://runbooks.example/settle",
        timeout=120,
    )(settle_invoice)
    handlers.job("mail.send", queue="mail", owner="mail", redact=["to"])(send)


def build() -> Built:
    """Fill an empty database and return what is in it."""
    register_kinds()
    b = Builder()
    Job.objects.raise_epoch(expected=1, actor="operator-1", reason="release 8.4", now=b.ago(3 * 86_400))
    _workers(b)
    _history(b)
    _stories(b)
    _minutes(b)
    _drill()
    return b.made


def _workers(b: Builder) -> None:
    b.worker(PAY_1, ["payments", "ledger"], started=86_000, beat=2, running=1)
    b.worker(REN_4, ["render", "images"], started=40_000, beat=6, running=1, concurrency=4)
    b.worker("ren-5:1391:0d2b7741", ["render", "images"], started=40_000, beat=9, concurrency=4)
    b.worker(MAIL_2, ["mail", "default"], started=7200, beat=1, concurrency=16)
    b.worker("rep-1:512:93aa0071", ["reports"], started=7200, beat=4, concurrency=2, stopping=True)
    b.worker(PAY_7, ["payments"], started=9000, beat=44 * 60, running=1, epoch=1)
    b.worker("mail-1:633:1b0e00c4", ["mail"], started=80_000, beat=7200, stopped=True)


def _history(b: Builder) -> None:
    """Jobs that went by without anybody noticing."""
    chance = random.Random(7)
    for n in range(30):
        ago = 10_800 - n * 270
        kind, queue, label = chance.choice(
            [
                ("documents.render", "render", f"DOC-{55060 + n}"),
                ("mail.send", "mail", f"INV-2026-{11700 + n}"),
                ("invoices.settle", "payments", f"INV-2026-{11700 + n}"),
                ("ledger.post", "payments", f"INV-2026-{11700 + n}"),
            ]
        )
        arguments = {"to": "someone@example.com"} if kind == "mail.send" else {"invoice": label}
        job_id = b.enqueue(kind, arguments, ago, queue=queue, label=label)
        lease = b.claim(job_id, PAY_1, ago - chance.uniform(0.2, 3))
        took = chance.uniform(0.4, 9)
        if chance.random() < 0.06:
            Job.objects.fail(
                lease, "RENDER_DEADLINE_EXCEEDED", "page 14", retry_after=1.0, now=b.ago(ago - 4)
            )
            lease = b.claim(job_id, REN_4, ago - 8)
        Job.objects.commit(lease, {"pages": n % 9 + 1, "bytes": 1000 + n * 731}, now=b.ago(ago - 9 - took))


def _people(b: Builder) -> None:
    """What operators did."""
    Job.objects.pause_queue(
        "payouts",
        actor="operator-2",
        reason="acquirer maintenance",
        until=b.now.replace(microsecond=0) + timedelta(hours=2),
        now=b.ago(28 * 60),
    )
    for n in range(3):
        b.enqueue(
            "payouts.transfer",
            {"payout": f"PAY-{88177 + n}"},
            27 * 60 - n * 140,
            queue="payouts",
            label=f"PAY-{88177 + n}",
        )
    b.made.jobs["paused"] = b.enqueue(
        "payouts.transfer", {"payout": "PAY-88190"}, 1310, queue="payouts", label="PAY-88190"
    )


def _stories(b: Builder) -> None:
    """In the order in which they were enqueued: the list goes by id."""
    _uncertain(b)
    _people(b)
    _unsettled(b)
    _failed(b)
    _cancelled(b)
    _around(b)
    _waiting(b)
    _running(b)


def _uncertain(b: Builder) -> None:
    """The job of the picture: failed, lost, unknown, and the lost worker came back twice."""
    job_id = b.enqueue(
        "invoices.settle",
        {
            "invoice": "INV-2026-11873",
            "amount": "4200.00",
            "currency": "EUR",
            "card": {"brand": "visa", "number": "4111111111111111"},
            "account": {"id": "account-7781", "holder": "A. Person"},
            "lines": [{"sku": "A-1", "qty": 2}, {"sku": "B-7", "qty": 1}],
        },
        2690,
        queue="payments",
        label="INV-2026-11873",
        unique_key="settle-11873",
        deadline=9.6 * 3600,
    )
    first = b.claim(job_id, PAY_1, 2688)
    Job.objects.runtime.end(
        [
            _failure(
                first, "RUNTIME_HANDLER_EXCEPTION", "LedgerUnavailable: the ledger answers 503", after=36.0
            ),
        ],
        now=b.ago(2679),
    )
    second = b.claim(job_id, PAY_7, 2640)
    b.note(second, beats=2)
    Job.objects.recover(now=b.ago(2548))
    third = b.claim(job_id, PAY_1, 1453)
    b.note(
        third,
        beats=1,
        log=LOG.format(*(b.ago(s).strftime("%H:%M:%S.%f")[:-3] for s in (1453, 1451, 1449, 1438))),
    )
    Job.objects.uncertain(
        third, "capture 4,200.00 EUR: read time-out after 10.0 s", reference="8b1e70", now=b.ago(1437)
    )
    Job.objects.runtime.renew([second], now=b.ago(1420))
    Job.objects.commit(second, {"captured": True}, now=b.ago(1419))
    b.made.jobs["uncertain"] = job_id


def _unsettled(b: Builder) -> None:
    other = b.enqueue(
        "invoices.settle", {"invoice": "INV-2026-11790"}, 1300, queue="payments", label="INV-2026-11790"
    )
    Job.objects.uncertain(b.claim(other, PAY_1, 1299), "capture: connection reset", now=b.ago(1290))


def _failure(lease: Lease, code: str, message: str, *, after: float | None) -> Any:
    from jobs import admission

    return admission.failure(
        lease, code, message, retry_after=after, traceback=redact.clean(TRACEBACK, limit=32_000)
    )


def _failed(b: Builder) -> None:
    for n, label in enumerate(("DOC-55102", "DOC-55104", "DOC-55109")):
        ago = 1200 - n * 90
        job_id = b.enqueue(
            "documents.render", {"document": label}, ago, queue="render", label=label, max_attempts=2
        )
        for turn in range(2):
            lease = b.claim(job_id, REN_4, ago - 10 - turn * 30)
            ending = _failure(lease, "RENDER_DEADLINE_EXCEEDED", "page 14 took longer than 20 s", after=5.0)
            Job.objects.runtime.end([ending], now=b.ago(ago - 20 - turn * 30))
        b.made.jobs["failed"] = job_id
    job_id = b.enqueue("documents.render", {"document": "DOC-55087"}, 800, queue="render", label="DOC-55087")
    lease = b.claim(job_id, REN_4, 799)
    Job.objects.fail(lease, "HANDLER_CONTENT_FAILED", "page 14 has no media box", now=b.ago(798))


def _cancelled(b: Builder) -> None:
    job_id = b.enqueue(
        "mail.send", {"to": "b@example.com"}, 760, queue="mail", label="INV-2026-11204", delay=3600
    )
    Job.objects.cancel(job_id, actor="operator-3", reason="paid by hand", now=b.ago(700))
    skipped = b.enqueue("reports.monthly", {"month": "2026-10"}, 690, queue="reports", label="2026-10")
    Job.objects.skip(
        b.claim(skipped, "rep-1:512:93aa0071", 689), "REPORT_EMPTY_SKIPPED", "no rows", now=b.ago(688)
    )
    held = b.enqueue(
        "ledger.post", {"invoice": "INV-2026-11661"}, 640, queue="payments", label="INV-2026-11661"
    )
    Job.objects.hold(
        held, actor="operator-2", reason="amount is being checked with the customer", now=b.ago(600)
    )


def _around(b: Builder) -> None:
    """A parent with children."""
    parent = b.enqueue(
        "reports.monthly", {"month": "2026-11"}, 420, queue="reports", label="2026-11, all regions"
    )
    for region in ("north", "south", "east"):
        child = b.enqueue(
            "documents.render",
            {"region": region},
            410,
            queue="render",
            label=f"2026-11 {region}",
            parent_id=parent,
        )
        if region != "east":
            Job.objects.commit(b.claim(child, REN_4, 405), {"pages": 12}, now=b.ago(390))
    lease = b.claim(parent, "rep-1:512:93aa0071", 419)
    Job.objects.wait(lease, WaitReason.TIMER, seconds=900, now=b.ago(380))
    b.made.jobs["parent"] = parent


def _waiting(b: Builder) -> None:
    job_id = b.enqueue("ads.image_generate", {"campaign": "CMP-3381"}, 300, queue="images", label="CMP-3381")
    Job.objects.wait(b.claim(job_id, REN_4, 299), WaitReason.PROVIDER, seconds=400, now=b.ago(298))
    approval = b.enqueue(
        "ledger.post", {"invoice": "INV-2026-11880"}, 280, queue="payments", label="INV-2026-11880"
    )
    Job.objects.wait(b.claim(approval, PAY_1, 279), WaitReason.APPROVAL, now=b.ago(278))
    retry = b.enqueue("mail.send", {"to": "c@example.com"}, 200, queue="mail", label="INV-2026-11911")
    Job.objects.fail(
        b.claim(retry, MAIL_2, 199),
        "RUNTIME_HANDLER_TIMEOUT",
        "relay did not answer",
        retry_after=280.0,
        now=b.ago(169),
    )
    b.enqueue("thumbs.backfill", {"asset": "AST-90112"}, 160, queue="images", label="AST-90112")
    b.enqueue("mail.send", {"to": "d@example.com"}, 140, queue="mail", label="newsletter 48", delay=7200)


def _running(b: Builder) -> None:
    convert = b.enqueue("documents.render", {"document": "DOC-55120"}, 41, queue="render", label="DOC-55120")
    lease = b.claim(convert, REN_4, 40)
    b.note(
        lease,
        beats=2,
        progress_done=148,
        progress_total=312,
        progress_note="page 148",
        log="\n".join(f"{b.ago(40 - n).strftime('%H:%M:%S')} page {n * 30 + 1} laid out" for n in range(5)),
    )
    Job.objects.runtime.renew([lease], now=b.ago(8))
    b.made.jobs["running"] = convert
    asked = b.enqueue(
        "invoices.settle", {"invoice": "INV-2026-11902"}, 38, queue="payments", label="INV-2026-11902"
    )
    held = b.claim(asked, PAY_1, 37)
    Job.objects.runtime.renew([held], now=b.ago(10))
    Job.objects.cancel(asked, actor="operator-2", reason="duplicate order", now=b.ago(9))
    b.made.jobs["cancel"] = asked
    done = b.enqueue(
        "invoices.settle", {"invoice": "INV-2026-11899"}, 14, queue="payments", label="INV-2026-11899"
    )
    lease = b.claim(done, PAY_1, 13.4)
    Job.objects.commit(
        lease,
        {"receipt": "R-77120", "captured": "118.40", "currency": "EUR", "token": "tok_secret"},
        now=b.ago(11),
    )
    b.made.jobs["succeeded"] = done
    for n in range(2):
        b.enqueue("mail.send", {"to": "e@example.com"}, 3 - n, queue="mail", label=f"INV-2026-{11912 + n}")


def _drill() -> None:
    """A zombie drill of this morning, refused everywhere."""
    course: list[dict[str, Any]] = []
    tries: list[dict[str, Any]] = []
    for part in PARTS:
        for does, t in (
            ("claim", 0.08),
            ("lapse", 2.11),
            ("take_over", 2.41),
            ("renew", 2.9),
            ("commit", 2.93),
        ):
            generation = 1 if does in ("claim", "lapse") else 2
            entry = {"t": t, "part": part, "does": does, "generation": generation}
            course.append(
                entry | {"lease_until": None if does == "commit" else 2.1 if generation == 1 else 62.4}
            )
        for n, point in enumerate(("renew", "prepare", "grant", "stage", "release", "fail", "commit")):
            entry = {"t": (2.2 if part == "lease" else 2.5) + n / 40, "part": part, "point": point}
            tries.append(
                entry | {"answer": "FENCED", "reason": "GENERATION", "refused": True, "accepted": False}
            )
    record = {"tries": tries, "course": course, "refusals": [], "jobs": [], "note": ""}
    number = kept.begin(DrillKind.ZOMBIE, by="shell: cron")
    kept.finish(number, DrillVerdict.PASSED, tried=len(tries), passed=len(tries), record=record)


def _minutes(b: Builder) -> None:
    """Three hours of figures, with a dip and a slow half hour."""
    chance = random.Random(11)
    rows: list[dict[str, Any]] = []

    def add(minute: datetime, measure: str, n: int, bucket: int = 0, queue: str = "", kind: str = "") -> None:
        row = {"minute": minute, "measure": measure, "queue": queue, "kind": kind, "bucket": bucket}
        rows.append(row | {"count": n, "total": 0.0})

    whole = b.now.replace(second=0, microsecond=0)
    for back in range(180, 0, -1):
        minute = whole - timedelta(minutes=back)
        dip = 20 < back < 31
        n = int((240 if dip else 412) + chance.uniform(-24, 24))
        for point, share in (("claim", 1.05), ("commit", 1.0), ("renew", 0.4)):
            add(minute, f"fence.{point}.accepted", int(n * share))
            add(
                minute,
                f"fence.{point}.checked",
                int(n * share) + (1 if back in (42, 43) and point == "commit" else 0),
            )
        if back in (42, 43, 18, 11):
            add(minute, f"refused.{'commit' if back > 20 else 'renew'}.GENERATION", 1)
        for measure, when in (("uncertain", (44, 24, 22, 21)), ("fail", range(3, 60, 4))):
            if back in when:
                add(minute, f"fence.{measure}.accepted", 1 + back % 3)
                add(minute, f"fence.{measure}.checked", 1 + back % 3)
        if back % 4 == 3:
            add(minute, "retries", 1 + back % 3)
        if back in (42, 43, 18):
            add(minute, "recovered.pending", 1, 0, "payments", "all")
        if back in (39, 19):
            add(minute, "failed", 1)
        add(minute, "claims", n)
        add(minute, "claims_empty", int(n * chance.uniform(0.006, 0.017)))
        slow = 2.6 if back < 30 else 1.0
        for queue, share in (("payments", 0.4), ("mail", 0.35), ("render", 0.25)):
            for bound, part in zip(
                BUCKETS[6:14], (0.04, 0.12, 0.3, 0.26, 0.16, 0.07, 0.04, 0.01), strict=True
            ):
                weight = part * (slow if bound >= 5000 else 1.0)
                if count := int(n * share * weight * chance.uniform(0.8, 1.2)):
                    add(minute, "due_to_commit", count, bound, queue, "all")
    b.session(lambda s: worker_rows.add_minutes(s, rows))
