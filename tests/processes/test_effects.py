"""Whatever happens to worker or provider, an effect is done once at most; the provider's ledger is the judge.

The table of tests/processes/effect_cases.py, made to happen. Each case has a job of its own for each replay
policy. Two providers judge: one honours keys, as `idempotent` promises; the other charges again with every
call, so that a call too many shows. The processes are started once, in the set-up of the first test.
"""

from __future__ import annotations

import json
import signal
import socket
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from jobs.management.commands.effects import PROPOSED
from jobs.models import Case as OpenCase
from jobs.models import EffectSlot, Evidence, Job, Worker
from jobs.status import TERMINAL, JobStatus
from tests.processes.conftest import Install
from tests.processes.effect_cases import CASES, LATE, PAGE, POLICIES, Case, Left, printed
from tests.processes.installation import Installation, WorkerProcess
from tests.provider import Provider

LEASE = 3
TRIED = POLICIES if connection.features.has_select_for_update else ("queryable",)
"""Each policy on PostgreSQL. SQLite takes the same path below them, and a minute of processes for each."""
FINAL = TERMINAL | {JobStatus.UNCERTAIN}


@dataclass
class Trial:
    """One case under one policy: its job, what was found while its worker stood still, and at the end."""

    case: Case
    policy: str
    invoice: str
    job_id: uuid.UUID
    meanwhile: Left | None = None
    ruled: Left | None = None
    end: Left | None = None
    keys: int = 0
    asked: tuple[str, ...] = ()
    """The kinds of the cases that are open at the end."""

    @property
    def queue(self) -> str:
        return f"proc.{self.invoice}"


class Street:
    """An installation between two providers."""

    def __init__(self, installation: Installation, honest: Provider, strict: Provider) -> None:
        self.installation = installation
        self.honest = honest
        self.strict = strict

    def provider(self, policy: str) -> Provider:
        return self.honest if policy == "idempotent" else self.strict

    def enqueue(self, case: Case, policy: str, nth: int = 0) -> Trial:
        invoice = f"{case.name}.{policy}" + (f".{nth}" if nth else "")
        job_id = self.installation.enqueue(
            "proc.charge", queue=f"proc.{invoice}", policy=policy, invoice=invoice
        )
        return Trial(case, policy, invoice, job_id)

    def start(self, trial: Trial, *arguments: str, failpoints: str = "", url: str = "") -> WorkerProcess:
        """Start a worker that knows this trial's queue only."""
        return self.work(trial.policy, trial.queue, *arguments, failpoints=failpoints, url=url)

    def work(
        self, policy: str, queues: str, *arguments: str, failpoints: str = "", url: str = ""
    ) -> WorkerProcess:
        environment = {"DEMO_PROVIDER_URL": url or self.provider(policy).url}
        return self.installation.start(
            "--queues", queues, *arguments, failpoints=failpoints, environment=environment
        )

    def look(self, trial: Trial) -> Left:
        """Return what there is of a trial."""
        made = [
            charge
            for charge in self.provider(trial.policy).ledger()["charges"]
            if charge["invoice"] == trial.invoice
        ]
        trial.keys = len({charge["key"] for charge in made})
        slot = EffectSlot.objects.using(self.installation.alias).filter(job_id=trial.job_id).first()
        status = self.installation.status(trial.job_id)
        return Left(len(made), slot.grants if slot else 0, slot.status if slot else "", status)

    def rule(self, trial: Trial, verdict: str) -> None:
        """Have one person, and a second where it takes two, rule on a trial's open case."""
        case = OpenCase.objects.using(self.installation.alias).get(job_id=trial.job_id, closed_at=None)
        self._until_settled(case)
        attest = ["--attest"] if verdict == "did_not_happen" else []
        words = ["rule", str(case.pk), verdict, "--reason-code", "other", *attest]
        second = bool(attest) and trial.policy == "non_replayable"
        done = self._say(case, words, by="ann", code=PROPOSED if second else 0)
        if second:
            self._say(case, ["approve", done["proposal"]], by="ben")

    def _until_settled(self, case: OpenCase) -> None:
        """Wait until the provider must know of what was sent: a ruling before that is refused."""
        if until := parse_datetime(self._show(case)["settle_by"] or ""):
            self.installation.until(lambda: timezone.now() > until, "the provider's time to settle")

    def _show(self, case: OpenCase) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(
            self.installation.manage("effects", "show", str(case.pk), "--json")
        )
        return shown

    def _say(self, case: OpenCase, words: list[str], *, by: str, code: int = 0) -> dict[str, Any]:
        said = ["--as", by, "--reason", "asked on the phone", "--snapshot", self._show(case)["snapshot"]]
        words = ["effects", *words, *said, "--json"]
        done: dict[str, Any] = json.loads(self.installation.manage(*words, code=code))
        return done

    def until_final(self, trials: list[Trial]) -> None:
        """Wait until no job can move without a person, or without whoever stands still."""
        ids = [trial.job_id for trial in trials]
        rows = Job.objects.using(self.installation.alias).filter(pk__in=ids)
        self.installation.until(
            lambda: not rows.exclude(status__in=FINAL).exists(), "the end of all that can go on"
        )


@pytest.fixture(scope="module")
def trials(
    install: Install, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Trial]:
    folders = [tmp_path_factory.mktemp(name) for name in ("effects", "honest", "strict")]
    with (
        django_db_blocker.unblock(),
        install(folders[0]) as installation,
        Provider.running(folders[1]) as honest,
        Provider.running(folders[2], "--mode", "keys=ignored") as strict,
    ):
        return _make_it_happen(Street(installation, honest, strict))


def _make_it_happen(street: Street) -> dict[tuple[str, str], Trial]:
    installation = street.installation
    for name in ("ann", "ben"):
        User.objects.db_manager(installation.alias).create_superuser(name)
    stopping = [case for case in CASES if case.meanwhile]
    trials = [street.enqueue(case, policy) for case in CASES if case not in stopping for policy in TRIED]
    for trial in trials:
        if trial.case.fault:
            provider = street.provider(trial.policy)
            provider.fault(trial.case.fault, invoice=trial.invoice)
            if trial.case.unseen:
                provider.fault("not_found", invoice=trial.invoice)
    _die(street, [trial for trial in trials if trial.case.failpoint])
    _find_nobody(street, [trial for trial in trials if not (trial.case.failpoint or trial.case.fault)])
    installation.raise_epoch()

    installation.lease_seconds = LEASE
    asleep = [_fall_asleep(street, case, policy) for case in stopping for policy in TRIED]
    trials += [trial for trial, _ in asleep]
    shared = [("idempotent",), ("queryable", "non_replayable")]
    survivors = [
        street.work(policies[0], queues) for policies in shared if (queues := _queues(trials, *policies))
    ]
    street.until_final(trials)
    for trial, _ in asleep:
        trial.meanwhile = street.look(trial)
        if trial.case.ruling and trial.meanwhile.job == JobStatus.UNCERTAIN:
            street.rule(trial, trial.case.ruling)
    street.until_final(trials)
    for trial, sleeper in asleep:
        trial.ruled = street.look(trial)
        # Asked to stop first, so that it says what it has to say and takes no other job.
        sleeper.signal(signal.SIGTERM)
        sleeper.signal(signal.SIGCONT)
    for _, sleeper in asleep:
        assert sleeper.wait() == 0, sleeper.said
    street.until_final(trials)
    for survivor in survivors:
        survivor.signal(signal.SIGTERM)
        assert survivor.wait() == 0, survivor.said
    for trial in trials:
        trial.end = street.look(trial)
        cases = OpenCase.objects.using(installation.alias).filter(job_id=trial.job_id, closed_at=None)
        trial.asked = tuple(cases.values_list("kind", flat=True))
    return {(trial.case.name, trial.policy): trial for trial in trials}


def _queues(trials: list[Trial], *policies: str) -> str:
    return ",".join(trial.queue for trial in trials if trial.policy in policies)


def _die(street: Street, trials: list[Trial]) -> None:
    """Have a worker die over each, two at a time."""
    for pair in zip(trials[::2], [*trials[1::2], None], strict=False):
        victims = [street.start(trial, failpoints=trial.case.failpoint) for trial in pair if trial]
        for victim in victims:
            assert victim.wait() == -signal.SIGKILL, victim.said


def _find_nobody(street: Street, trials: list[Trial]) -> None:
    """Have each sent once to where nobody listens."""
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen: nobody else can either
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        workers = [street.start(trial, "--once", url=url) for trial in trials]
        for worker in workers:
            assert worker.wait() == 0, worker.said


def _fall_asleep(street: Street, case: Case, policy: str) -> tuple[Trial, WorkerProcess]:
    """Return a trial and its worker, which stands still with the permission to send."""
    for nth in range(10):
        trial = street.enqueue(case, policy, nth)
        sleeper = street.start(trial, failpoints=case.failpoint)
        street.installation.until_stopped(sleeper)
        if street.installation.is_writable():
            return trial, sleeper
        sleeper.end()  # its heartbeat was writing just then
    raise AssertionError("the heartbeat was in the way ten times")


EACH = [(case.name, policy) for case in CASES for policy in TRIED]


@pytest.mark.parametrize(("name", "policy"), EACH)
def test_an_effect_ends_as_its_policy_promises(
    trials: dict[tuple[str, str], Trial], name: str, policy: str
) -> None:
    trial = trials[name, policy]
    if trial.case.meanwhile is not None:
        assert trial.meanwhile == trial.case.meanwhile[POLICIES.index(policy)]
    if trial.case.ruled is not None:
        assert trial.ruled == trial.case.ruled[POLICIES.index(policy)]
    assert trial.end == trial.case.end(policy)
    left = "contradiction" if trial.end == LATE else "unknown" if trial.end.job == "uncertain" else ""
    assert trial.asked == ((left,) if left else ())


@pytest.mark.parametrize(("name", "policy"), EACH)
def test_an_effect_is_never_done_twice(trials: dict[tuple[str, str], Trial], name: str, policy: str) -> None:
    trial = trials[name, policy]
    assert trial.end is not None
    assert trial.end.acts <= 1
    assert trial.keys <= 1


def test_the_page_prints_the_table_that_is_tested() -> None:
    """When it does not: python -m tests.processes.effect_cases"""
    page = PAGE.read_text("utf-8")
    assert page == printed(page)


# -- the same key, another payload


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Provider]:
    with Provider.running(tmp_path, "--mode", "keys=ignored") as provider:
        yield provider


@pytest.mark.parametrize(
    ("policy", "status", "conflict"),
    [
        ("idempotent", "unknown", True),
        ("queryable", "committed", True),
        # Not even run again: nobody but a person could say what became of X.
        ("non_replayable", "unknown", False),
    ],
)
def test_a_payload_that_changed_after_a_lost_answer_sends_nothing_more(
    installation: Installation, strict: Provider, policy: str, status: str, conflict: bool
) -> None:
    """Contract §6: A sends X and dies; B builds Y for the same slot. A person is asked, nobody is called."""
    price = Path(installation.file("price"))
    price.write_text("12.50")
    job_id = installation.enqueue("proc.charge", policy=policy, invoice="INV-1", price=str(price))
    environment = {"DEMO_PROVIDER_URL": strict.url}
    first = installation.start(failpoints="report.sending=kill", environment=environment)
    assert first.wait() == -signal.SIGKILL, first.said
    price.write_text("99.00")
    installation.raise_epoch()
    second = installation.start(environment=environment)
    installation.until(lambda: installation.status(job_id) == JobStatus.UNCERTAIN, "the question")
    second.signal(signal.SIGTERM)
    assert second.wait() == 0, second.said

    (charge,) = strict.ledger()["charges"]
    assert charge["amount"] == "12.50"
    slot = EffectSlot.objects.using(installation.alias).get()
    assert (slot.status, slot.in_conflict, slot.grants) == (status, conflict, 1)
    cases = OpenCase.objects.using(installation.alias).filter(closed_at__isnull=True)
    assert [case.kind for case in cases] == ["conflict" if conflict else "unknown"]
    if policy == "queryable":
        # X was asked for before anybody was asked to rule.
        found = Evidence.objects.using(installation.alias).get(source="inquiry")
        assert (found.outcome, found.decisive) == ("found", True)


@pytest.mark.parametrize(
    ("failpoint", "charges", "slots"),
    [
        # The call has gone out: the cancel stops what comes after it, and undoes nothing outside.
        ("report.sending=stop", 1, ["committed"]),
        # Nothing has gone out: it does not go out any more.
        ("grant.before=stop", 0, []),
    ],
)
def test_a_cancel_that_meets_a_sending_stops_what_comes_after_it_only(
    installation: Installation, strict: Provider, failpoint: str, charges: int, slots: list[str]
) -> None:
    """Contract §7: the holder hears of it before an effect and before its commit, and acknowledges."""
    job_id = installation.enqueue("proc.charge", policy="queryable", invoice="INV-1")
    environment = {"DEMO_PROVIDER_URL": strict.url}
    sender = installation.start(failpoints=failpoint, environment=environment)
    installation.until_stopped(sender)
    jobs = Job.objects.db_manager(installation.alias)
    assert jobs.cancel(job_id, actor="ada", reason="ordered by mistake") == JobStatus.RUNNING
    other = installation.start(environment=environment)
    workers = Worker.objects.using(installation.alias)
    installation.until(lambda: workers.count() == 2, "the other worker")
    sender.signal(signal.SIGCONT)
    installation.until(lambda: installation.status(job_id) == JobStatus.CANCELLED, "the cancel")
    for worker in (sender, other):
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.said

    assert len(strict.ledger()["charges"]) == charges
    found = EffectSlot.objects.using(installation.alias).values_list("status", flat=True)
    assert list(found) == slots
