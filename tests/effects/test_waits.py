"""A job that waited for its provider longer than its kind may, with the effect's outcome still open."""

from __future__ import annotations

from jobs.models import Case
from tests import build
from tests.effects.outside import Outside, slot, steps, the_job, worker


def test_a_wait_that_has_run_out_leaves_an_open_effect_to_a_person(outside: Outside) -> None:
    outside.kind("idempotent")
    outside.sending = outside.charge_silently
    outside.handler().enqueue()
    steps(worker(), 1)
    assert (the_job().status, the_job().wait_reason, slot().status) == ("waiting", "provider", "unknown")
    long_ago = the_job().created_at
    build.edit(the_job().pk, next_attempt_at=long_ago, wait_ends_at=long_ago)
    steps(worker(), 1)
    assert (the_job().status, the_job().open_effects, slot().status) == ("uncertain", 1, "unknown")
    assert Case.objects.get(closed_at=None).effect_id == slot().pk
