"""A web process looks for garbage where nobody waits for it."""

import gc
import weakref

import pytest

from config import garbage, web


class Knot:
    """Refers to itself, so that only a look for cycles finds it."""

    def __init__(self):
        self.self = self


@pytest.fixture
def settled():
    before = gc.get_threshold()
    garbage.settle()
    yield
    gc.set_threshold(*before)


def left_behind(n):
    """Leave `n` knots; returns a reference that tells whether the first of them is still there."""
    first = Knot()
    reference = weakref.ref(first)
    rest = [Knot() for _ in range(n - 1)]
    del first, rest
    return reference


def test_what_requests_left_goes_after_the_next_answer_and_not_before(settled):
    left = left_behind(garbage.LEFT + 100)
    assert left() is not None
    web.post_request(None, None, {}, None)
    assert left() is None


def test_little_is_left_for_a_later_look(settled):
    left = left_behind(10)
    web.post_request(None, None, {}, None)
    assert left() is not None


def test_what_outlived_looks_among_the_young_is_found_in_the_end(settled):
    old = Knot()
    left = weakref.ref(old)
    gc.collect(0)
    del old
    left_behind(garbage.LEFT + 100)
    web.post_request(None, None, {}, None)
    assert left() is not None
    for _ in range(garbage.OLDER + 1):
        left_behind(garbage.LEFT + 100)
        web.post_request(None, None, {}, None)
    assert left() is None
