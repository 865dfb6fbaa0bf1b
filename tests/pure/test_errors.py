"""The registry of error codes: families are decisions, and the contract's codes are all there."""

from __future__ import annotations

import pytest

from jobs import errors
from jobs.errors import Family

# code: family, whether a retry may help. The codes of the ten queues that the contract unifies, and its own.
REQUIRED = {
    "LEASE_TIMEOUT_RECOVERED": (Family.LEASE, True),
    "AI_PAGE_MUTATION_INTERRUPTED": (Family.LEASE, True),
    "PAGE_SCREENSHOT_JOB_INTERRUPTED": (Family.LEASE, True),
    "AI_RUN_PROCESS_STOPPED": (Family.LEASE, False),
    "RENDER_SERVICE_UNAVAILABLE": (Family.INFRA, True),
    "RENDER_DEADLINE_EXCEEDED": (Family.INFRA, True),
    "RUNTIME_VITE_QUEUE_FULL": (Family.INFRA, True),
    "RUNTIME_HANDLER_EXCEPTION": (Family.INFRA, True),
    "PAGE_VALIDATION_FAILED": (Family.CONTENT, False),
    "PAGE_SCREENSHOT_JOB_STALE": (Family.CONTENT, False),
    "EFFECT_ABANDON_FAILED": (Family.CONTENT, False),
    "AI_RUN_CANCELLED": (Family.CANCEL, False),
    "RENDER_CANCELLED": (Family.CANCEL, False),
    "AI_RUN_NOT_ACTIVE": (Family.CANCEL, False),
    "JOB_PREDECESSOR_CANCELLED": (Family.CANCEL, False),
    "AI_PAGE_MUTATION_LEASE_LOST": (Family.FENCE, False),
    "BUILD_LEASE_OWNER_MISMATCH": (Family.FENCE, False),
    "AI_EXTERNAL_STATE_INCONSISTENT": (Family.FENCE, False),
    "RENDER_QUEUE_FULL": (Family.LIMIT, False),
    "LEASE_TIMEOUT_MAX_ATTEMPTS": (Family.LIMIT, False),
    "JOB_DEADLINE_EXCEEDED": (Family.LIMIT, False),
}


@pytest.fixture(autouse=True)
def _registry():
    before = dict(errors._registry)
    yield
    errors._registry.clear()
    errors._registry.update(before)


@pytest.mark.parametrize("code", REQUIRED)
def test_code_is_registered_with_its_family(code):
    entry = errors.lookup(code)
    assert entry is not None
    assert (entry.family, entry.retryable) == REQUIRED[code]
    assert errors.is_retryable(code) is REQUIRED[code][1]


def test_every_entry_says_what_it_means():
    for entry in errors.registered():
        assert entry.meaning.endswith("."), entry.code


def test_entries_come_in_alphabetical_order():
    codes = [entry.code for entry in errors.registered()]
    assert codes == sorted(codes)
    assert set(REQUIRED) <= set(codes)


def test_name_decides_nothing():
    """It ends like an unavailable service; nobody registered it, so nobody promised that a retry is safe."""
    assert errors.lookup("SOMETHING_UNAVAILABLE") is None
    assert errors.is_retryable("SOMETHING_UNAVAILABLE") is False
    errors.register("SOMETHING_UNAVAILABLE", Family.INFRA, meaning="Not worth a retry.")
    assert errors.is_retryable("SOMETHING_UNAVAILABLE") is False


@pytest.mark.parametrize(
    ("code", "family"),
    [
        ("MAIL_UNAVAILABLE", Family.CONTENT),
        ("MAIL_VALIDATION_FAILED", Family.INFRA),
        ("MAIL_CANCELLED", Family.LIMIT),
        ("MAIL_LEASE_LOST", Family.LIMIT),
        ("MAIL_QUEUE_FULL", Family.CONTENT),
        ("MAIL_INTERRUPTED", Family.FENCE),
    ],
)
def test_name_that_reads_as_another_family_is_refused(code, family):
    with pytest.raises(ValueError, match=r"rename it or change its family"):
        errors.register(code, family)
    assert errors.lookup(code) is None


BAD = ["lower_case", "ONEWORD", "WITH SPACE_X", "_LEADING_X", "TRAILING_", "A_" * 40 + "B", "", "A_B\n"]


@pytest.mark.parametrize("code", BAD)
def test_badly_formed_code_is_refused(code):
    with pytest.raises(ValueError, match="is no error code"):
        errors.register(code, Family.CONTENT)


def test_same_code_twice_is_one_entry_and_another_family_is_refused():
    first = errors.register("PARCEL_LOST", Family.CONTENT, meaning="Gone.")
    assert errors.register("PARCEL_LOST", Family.CONTENT, meaning="Gone.") == first
    with pytest.raises(ValueError, match="registered already, as content"):
        errors.register("PARCEL_LOST", Family.INFRA, meaning="Gone.")
