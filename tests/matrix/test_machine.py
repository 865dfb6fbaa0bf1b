"""Any order of everything that can happen leaves the database as the contract says, step by step."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.matrix.machine import Machine

pytestmark = pytest.mark.django_db(transaction=True)


def test_database_follows_the_model_through_any_life():
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=50,
            derandomize=True,  # a failure here is a failure everywhere
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
