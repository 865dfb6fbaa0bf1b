"""The API is what docs/openapi.yaml says: schemathesis asks a real web server, once as each sort of caller.

Always the same here; `make fuzz` (tests/fuzz/__main__.py) lets it make up more, and other requests each time.
What it finds becomes a test of its own in tests/api.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from tests.api import described
from tests.fuzz import callers
from tests.fuzz.attack import attack
from tests.fuzz.hooks import SENT, Sent
from tests.fuzz.server import serving

EXAMPLES, WALKS = int(os.environ.get("FUZZ_EXAMPLES", "0")), int(os.environ.get("FUZZ_WALKS", "3"))
"""How many requests are made up for each operation beside those that are counted up, and how many walks go
along the links. Without any made up the run is the same each time."""
EVERY = {"every scope": 6, "session": 8, "few scopes": 11, "nobody": 12}
"""Who asks, and then each how many-th is sent of some 85 requests that are counted up for each operation."""
REQUESTS = 2500
"""At least so many on each of the two databases."""
DONE = {"every scope": 18, "session": 14, "few scopes": 5, "nobody": 0}
"""Of so many operations at least one request is to succeed: a fuzz of refusals alone shows little."""


def test_no_request_gets_an_answer_that_is_not_described_or_has_wrong_data_accepted(
    transactional_db: None, tmp_path: Path
) -> None:
    headers, known = callers.make(), callers.known()
    sent = {mode: Counter[Sent]() for mode in EVERY}
    failed = []
    phases = ("stateful", "coverage,fuzzing" if EXAMPLES else "coverage")
    with serving(tmp_path) as root:
        # First the walks: what comes after them closes claims and pauses queues.
        for phase in phases:
            most = WALKS if phase == "stateful" else EXAMPLES or 1
            for mode, every in EVERY.items():
                print(f"fuzz: {mode}, {phase}", flush=True)
                fixed: dict[str, int] = {} if EXAMPLES else {"seed": 1, "every": every}
                if attack(root, headers[mode], phase, most, known=known, **fixed):
                    failed.append(f"{mode}, {phase}")
                sent[mode] += SENT
    print_sums(sent)
    assert not failed, "schemathesis says above what is wrong"
    assert sum(requests.total() for requests in sent.values()) >= REQUESTS
    every_operation = {f"{operation.method} {operation.path}" for operation in described.operations()}
    for mode, requests in sent.items():
        assert {request.operation for request in requests} == every_operation, mode
        ways = {(request.phase, request.mode) for request in requests}
        assert ways >= {(p, m) for p in ("stateful", "coverage") for m in ("positive", "negative")}, mode
        assert done(requests) >= DONE[mode], mode


def done(requests: Counter[Sent]) -> int:
    """Return of how many operations a request succeeded."""
    return len({request.operation for request in requests if request.status < 300})


def print_sums(sent: dict[str, Counter[Sent]]) -> None:
    for mode, requests in sent.items():
        ways: Counter[str] = Counter()
        for request, number in requests.items():
            ways[f"{request.phase} {request.mode}"] += number
        told = ", ".join(f"{number} {way}" for way, number in sorted(ways.items()))
        print(f"fuzz: {mode}: {requests.total()} requests ({told}), {done(requests)} operations done")
