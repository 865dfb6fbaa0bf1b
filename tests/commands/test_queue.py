"""`manage.py queue`: who may pause what, until when, and what is kept of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobs.models import AuditEntry, Job, Queue
from tests import build
from tests.build import KIND, QUEUE
from tests.commands.conftest import manage

pytestmark = pytest.mark.django_db
BY = ("--as", "grace", "--reason", "drill")


def claimed() -> bool:
    return bool(Job.objects.claim(worker_id="w", queues=[QUEUE], kinds=[KIND], now=build.at(1)))


def test_paused_queue_hands_out_nothing_until_it_is_resumed(chief):
    build.enqueue()
    answer = manage("queue", "pause", QUEUE, *BY, "--json")
    assert (answer.code, answer.document["changed"]) == (0, True)
    assert not claimed()
    assert manage("queue", "resume", QUEUE, *BY, "--json").document["changed"] is True
    assert manage("queue", "resume", QUEUE, *BY, "--json").document["changed"] is False
    assert claimed()
    assert list(AuditEntry.objects.order_by("seq").values_list("action", "user")) == [
        ("pause_queue", "grace"),
        ("resume_queue", "grace"),
    ]


def test_list_tells_since_when_until_when_by_whom_and_why(chief):
    assert manage("queue", "list").out == "No queue is paused.\n"
    manage("queue", "pause", "mail", *BY, "--until", "2999-01-31T12:00:00Z")
    then = datetime(2001, 1, 31, tzinfo=UTC)
    Job.objects.pause_queue("past", actor="ann", reason="r", until=then + timedelta(hours=1), now=then)
    (row,) = manage("queue", "list", "--json").document["queues"]
    assert (row["name"], row["paused_until"], row["pause_reason"]) == (
        "mail",
        "2999-01-31T12:00:00+00:00",
        "drill",
    )
    out = manage("queue", "list").out
    assert "until 2999-01-31 12:00:00 by grace" in out
    assert "drill" in out


def test_a_pause_that_would_be_over_already_is_refused_and_none_is_promised(chief):
    answer = manage("queue", "pause", "mail", *BY, "--until", "2001-01-31T12:00:00Z")
    assert (answer.code, answer.out) == (2, "")
    assert answer.errors == "until: an instant that is still to come\n"
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_nobody_touches_a_queue_without_the_permission(verb, person):
    person("grace", "raise_epoch", "fence_worker", "hold_job")
    if verb == "resume":
        Job.objects.pause_queue(QUEUE, actor="ann", reason="drill")
    answer = manage("queue", verb, QUEUE, *BY, "--json")
    assert (answer.code, answer.document["error"]["code"]) == (1, "NOT_PERMITTED")
    assert Queue.objects.filter(paused_at__isnull=False).exists() is (verb == "resume")


def test_what_is_no_name_of_a_queue_is_bad_usage(chief):
    answer = manage("queue", "pause", "no such/queue", *BY)
    assert (answer.code, Queue.objects.count()) == (2, 0)
