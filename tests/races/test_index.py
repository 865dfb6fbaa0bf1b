"""Search attributes laid for jobs that were there before, while somebody revises one of them."""

from __future__ import annotations

from typing import Any

from jobs.handlers import job
from jobs.models import Job, SearchAttribute
from jobs.operations import indexing
from tests.races.ground import PERSON, version
from tests.races.interleave import Race, Run, Scene

KIND = "tests.races.indexed"


def test_job_that_is_revised_while_it_is_indexed_is_found_by_its_new_input(race: Race) -> None:
    job(KIND, search=["n"])(_nothing)

    def scene() -> Scene:
        job_id = Job.objects.enqueue(KIND, {"n": 1}).job_id
        other = Job.objects.enqueue(KIND, {"n": 7}).job_id
        seen = version(job_id)

        def check(run: Run) -> None:
            assert run.answers["revise"] == 2
            rows = SearchAttribute.objects.filter(job__in=[job_id, other]).order_by("value")
            assert list(rows.values_list("job", "value")) == [(job_id, "2"), (other, "7")]

        def revise() -> Any:
            return Job.objects.revise(job_id, {"n": 2}, state_version=seen, **PERSON)

        def index() -> Any:
            return sum(indexing.index(KIND), indexing.Indexed())

        return Scene({"revise": revise, "index": index}, check)

    assert race.explore(scene).complete


def _nothing(n: int) -> None:
    """Do nothing."""
