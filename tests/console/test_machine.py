"""The state machine on a job's page: the table's moves and no others, and no line through a box."""

import re

import pytest
from django.urls import reverse

from console import machine, moves
from console.machine import BOX, PLACES, TALL
from jobs.models import Job
from jobs.status import TRANSITIONS, JobStatus, WaitReason
from tests import build
from tests.console import matters

pytestmark = [pytest.mark.looks_alike, pytest.mark.django_db]


def drawn(job_id):
    job = Job.objects.get(pk=job_id)
    return machine.draw(job, list(job.attempts.order_by("generation")), False, moves.of(job))


@pytest.mark.parametrize("status", list(JobStatus))
def test_arrows_are_the_moves_that_the_page_says_and_lines_the_rest_of_the_table(status):
    job = Job.objects.get(pk=build.id_of(build.job(status)))
    shown = drawn(job.pk)
    assert [n.status for n in shown.nodes if n.role == "here"] == [status]
    assert {n.status for n in shown.nodes if n.role == "next"} == {m.target for m in moves.of(job)}
    legal = {(t.source, t.target) for t in TRANSITIONS if t.source and t.source != t.target}
    assert len(shown.open) + len(shown.quiet) == len(legal)
    assert len(shown.open) == len(moves.of(job))
    assert all(line.head for line in shown.open)
    assert len({line.path for line in [*shown.open, *shown.quiet]}) == len(legal)


def along(path):
    """Return points of a line, its ends left out."""
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", path)]
    if "V" in path:
        x, top, bottom = numbers
        return [(x, top + (bottom - top) * n / 20) for n in range(1, 20)]
    ends = list(zip(numbers[::2], numbers[1::2], strict=True))
    points = []
    for n in range(1, 40):
        t = n / 40
        weights = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
        points.append(tuple(sum(w * p[i] for w, p in zip(weights, ends, strict=True)) for i in (0, 1)))
    return points


def test_no_line_runs_through_the_box_of_a_status_that_it_does_not_join():
    for a, b in machine.LEADS:
        for x, y in along(machine._path(a, b)):
            through = [
                status
                for status, (left, middle) in PLACES.items()
                if left < x < left + BOX and abs(y - middle) < TALL / 2
            ]
            assert through == [], (a, b)


def test_statuses_that_the_attempts_tell_of_are_marked_and_no_others():
    job_id = build.enqueue(now=build.at(0))
    assert "It has been" not in drawn(job_id).description
    Job.objects.wait(build.claim(job_id, now=build.at(0)), WaitReason.TIMER, seconds=60, now=build.at(1))
    assert {n.status for n in drawn(job_id).nodes if n.passed} == {JobStatus.PENDING, JobStatus.RUNNING}
    Job.objects.commit(build.claim(job_id, now=build.at(61)), 1, now=build.at(62))
    shown = drawn(job_id)
    assert [n.status for n in shown.nodes if n.passed] == ["pending", "running", "waiting"]
    assert shown.description == (
        "The job is succeeded. It has been: pending, running, waiting. Nothing moves it from here."
    )


def test_page_draws_it_and_says_it_in_words(viewer):
    case = matters.open_case()
    html = viewer.get(reverse("admin:job", args=[case.job_id])).content.decode()
    assert 'class="state here st-unk"' in html
    assert "The job is uncertain. It has been: pending, running. From here it can become: pending," in html
    job = Job.objects.get(pk=case.job_id)
    assert JobStatus.UNCERTAIN in machine.passed(Job(status=JobStatus.PENDING), job.attempts.all(), True)


@pytest.mark.parametrize("verb", sorted({move.verb for move in TRANSITIONS}))
def test_every_verb_of_the_table_is_said_in_words(verb):
    said = moves.said(verb)
    assert said != verb
    assert " " in said
