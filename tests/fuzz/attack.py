"""Runs schemathesis once, in this process: to read it anew for each run would take a second each time."""

from __future__ import annotations

import os
from unittest import mock

from tests.fuzz import hooks
from tests.run import ROOT

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,negative_data_rejection,ignored_auth"
)
"""Not: whether all that fits the description is taken. It cannot tell which kinds of jobs there are, say."""
DESCRIPTION = ROOT / "jobs/static/jobs/openapi.json"
"""The same as docs/openapi.yaml, and read in a tenth of the time."""


def attack(
    root: str,
    headers: list[str],
    phases: str,
    most: int,
    *,
    known: dict[str, list[str]],
    seed: int | None = None,
    every: int = 1,
) -> int:
    """Run phases of schemathesis on the server at `root` as one caller; returns its exit code.

    `most` bounds what is made up for each operation, or the walks. With a `seed` the same is made up each
    time. Of the cases that coverage counts up only each `every`-th is sent. `known` see hooks.begin. What was
    sent is in hooks.SENT.
    """
    from schemathesis.cli import schemathesis

    hooks.begin(every, known)
    # A session stays what it is, whatever is put into the header of tokens.
    bearer = any(header.startswith("Authorization") for header in headers)
    chance = ["--seed", str(seed), "--generation-deterministic"]
    if seed is None:
        chance = ["--generation-database", "none"]
    command = [
        *("--config-file", str(ROOT / "tests/fuzz/schemathesis.toml")),
        *("run", str(DESCRIPTION), "--url", root),
        *("--mode", "all", "--phases", phases, "--max-examples", str(most), *chance),
        *("--checks", CHECKS if bearer else CHECKS.replace(",ignored_auth", "")),
        *("--request-timeout", "30", "--suppress-health-check", "all", "--no-color", "--warnings", "off"),
        # It would put a made-up token beside the session, and nothing would get past it.
        *("--generation-with-security-parameters", str(bearer).lower()),
        *(part for header in headers for part in ("--header", header)),
    ]
    # Else requests would look for a file of log-ins, in several places, before each request.
    with mock.patch.dict(os.environ, NETRC=""):
        try:
            schemathesis.main(command, prog_name="schemathesis", standalone_mode=False)
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0
