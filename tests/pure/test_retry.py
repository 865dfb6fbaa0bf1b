"""Back-off never overflows, never spins and never exceeds its cap."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.retry import Backoff

HOUR = 3600.0


@pytest.mark.parametrize("factor", [2.0, 5.0, 10.0, 1.0001])
@pytest.mark.parametrize("failures", [16, 46, 47, 63, 1074, 2000, 10**6, 10**18])
def test_many_failures_wait_the_cap(factor, failures):
    backoff = Backoff(base=2, factor=factor, cap=HOUR)
    ceiling = backoff.ceiling(failures)
    assert ceiling <= HOUR
    if factor > 1.1 or failures > 10**5:
        assert ceiling == HOUR
    assert 1 <= backoff.delay(failures) <= HOUR


def test_ceiling_doubles_until_the_cap():
    assert [Backoff(base=2, factor=2, cap=60).ceiling(n) for n in range(8)] == [2, 2, 4, 8, 16, 32, 60, 60]


def test_factor_of_one_stays_at_its_base():
    assert Backoff(base=5, factor=1, cap=60).ceiling(2000) == 5


def test_delays_are_spread_over_the_whole_range():
    """Full jitter: a herd that failed together does not come back together."""
    dice = random.Random(1)
    delays = [Backoff(base=2, factor=2, cap=HOUR).delay(5, rng=dice) for _ in range(2_000)]
    assert min(delays) < 2
    assert max(delays) > 31
    assert 15 < sum(delays) / len(delays) < 18


@pytest.mark.parametrize(
    "nonsense",
    [
        {"factor": 0},
        {"factor": -2},
        {"factor": 0.999},
        {"factor": math.nan},
        {"factor": math.inf},
        {"base": 0},
        {"base": -1},
        {"base": math.nan},
        {"base": 0.5},
        {"floor": -1},
        {"cap": 1},
        {"cap": math.inf},
        {"cap": 31 * 86_400},
        {"cap": "60"},
        {"base": None},
    ],
    ids=str,
)
def test_nonsense_is_refused_when_the_kind_is_registered(nonsense):
    with pytest.raises(ValueError, match="back-off"):
        Backoff(**nonsense)


def test_zero_is_possible_only_where_it_is_asked_for_by_name():
    assert Backoff(base=0.001, floor=0, cap=1).delay(1) >= 0
    assert Backoff().delay(1) >= 1


@given(
    base=st.floats(1, 1e5),
    factor=st.floats(1, 1e9),
    cap=st.floats(1, 30 * 86_400),
    failures=st.integers(-5, 10**9),
)
def test_any_legal_backoff_stays_between_floor_and_cap(base, factor, cap, failures):
    cap = max(base, cap)
    backoff = Backoff(base=base, factor=factor, cap=cap)
    assert base <= backoff.ceiling(failures) <= cap
    assert 1 <= backoff.delay(failures) <= round(cap, 3) + 0.001
