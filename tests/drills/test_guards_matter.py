"""A drill sees a missing guard: one is taken out of the real statement, and the drill must say so."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import call_command

from jobs.ledger import claim, fence, recover, renew, settle, slots

pytestmark = pytest.mark.django_db
OVER = "{lease_expires_at} <= t.now\n"
LATER = "{lease_expires_at} < t.now\n"
NOT_UNKNOWN = "crash-with-slot-queryable, step 6 (claim B): slot expected 'unknown', observed 'executing'"
SENT_AGAIN = "crash-with-slot-non-replayable, step 9 (claim B): slot expected 'unknown', observed 'executing'"
NO_TAKEOVER = "worker-exits-lease-expires, step 5 (claim B): returned expected 2, observed None"


@pytest.fixture
def _other_claims() -> Iterator[None]:
    claim.claim_text.cache_clear()
    yield
    claim.claim_text.cache_clear()


@pytest.mark.usefixtures("_other_claims", "unchanged")
@pytest.mark.parametrize(
    ("module", "statement", "guard", "instead", "deviation"),
    [
        (settle, "COMMIT", fence.LEASE.line, "", "edges, step 5 (finish A done): returned"),
        (
            settle,
            "COMMIT",
            fence.GENERATION.line,
            "",
            "stale-worker-returns, step 6 (finish A done): returned",
        ),
        (renew, "RENEW", fence.LEASE.line, "", "edges, step 4 (renew A): returned"),
        (slots, "TO_UNKNOWN", "s.status = 'executing'", "s.status = 'nothing'", NOT_UNKNOWN),
        (slots, "TO_UNKNOWN", "s.status = 'executing'", "s.status = 'nothing'", SENT_AGAIN),
        (recover, "PICK_EXPIRED", OVER, LATER, NO_TAKEOVER),
        (claim, "EXPIRED", OVER, LATER, NO_TAKEOVER),
    ],
    ids=[
        "commit-lease",
        "commit-generation",
        "renew-lease",
        "slot-open",
        "slot-person",
        "expired",
        "takeover",
    ],
)
def test_a_drill_without_one_guard_exits_1_and_names_what_deviates(
    module, statement, guard, instead, deviation, monkeypatch
):
    text = getattr(module, statement)
    assert guard in text
    monkeypatch.setattr(module, statement, text.replace(guard, instead))
    errors = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("drills", "--scenario", deviation.split(",")[0], stdout=StringIO(), stderr=errors)
    assert ended.value.code == 1
    assert deviation in errors.getvalue()
