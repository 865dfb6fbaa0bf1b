"""A command whose database cannot be used says so in one sentence, and with the exit code of that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from config.env import ROOT

BY = ("--as", "ada", "--reason", "deploy")
COMMANDS = [
    ("audit", "verify"),
    ("artefacts",),
    ("bill", "demo/files/invoices.csv"),
    ("convert", "README.md"),
    ("demo_seed",),
    ("drain",),
    ("jobs", "list"),
    ("token", "list"),
    ("token", "create", "--user", "ada", "--name", "ci", "--scopes", "ops", *BY),
    ("token", "revoke", "ilk_AbCdEfGh", *BY),
    ("zombie_drill",),
]
PLACES = {
    "no database": (
        "some text, longer than what a file of SQLite begins with\n" * 9,
        "file is not a database.",
    ),
    "not migrated": ("", "no such table: "),
}


@pytest.mark.parametrize(("content", "why"), PLACES.values(), ids=list(PLACES))
def test_database_that_cannot_be_used_is_told_in_one_sentence(tmp_path: Path, content: str, why: str) -> None:
    place = tmp_path / "file"
    place.write_text(content)
    (tmp_path / "media" / "attempts" / "01a228f13ad772fabf86e810dc333a4f").mkdir(parents=True)
    settings = {"DATABASE_URL": f"sqlite:///{place}", "MEDIA_ROOT": str(tmp_path / "media"), "DEMO": "1"}
    started = {
        command: subprocess.Popen(
            [sys.executable, "manage.py", *command],
            cwd=ROOT,
            env={**os.environ, **settings},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in COMMANDS
    }
    for command, process in started.items():
        errors = process.communicate(timeout=120)[1]
        last = errors.strip().splitlines()[-1].removeprefix("CommandError: ")
        assert last.startswith(f"The database cannot be used: {why}"), (command, errors)
        assert "Traceback" not in errors, command
        assert process.returncode == 4, command


@pytest.mark.parametrize(
    "command",
    [
        ("drain",),
        ("epoch", "show"),
        ("health",),
        ("quarantine", "--non-replayable", *BY),
        ("queue", "list"),
        ("second_factor", "reset", "eve", *BY),
        ("workers", "list"),
        ("zombie_drill",),
    ],
)
def test_a_database_that_is_not_configured_is_bad_usage(command: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="there is no such database, only default"):
        call_command(*command, "--database", "nowhere")


@pytest.mark.parametrize(
    "command",
    [
        ("audit", "list", "--actor", "\udcff"),
        ("audit", "list", "--object", "job:\udcff"),
        ("effects", "show", "01a228f1", "--as", "\udcff"),
        ("epoch", "close-claims", "--as", "\udcff", "--reason", "deploy"),
        ("token", "create", "--user", "\udcff", "--name", "ci", "--scopes", "ops", *BY),
        ("token", "revoke", "ilk_AbCdEfG\udcff", *BY),
        ("zombie_drill", "--as", "\udcff"),
    ],
)
def test_bytes_that_are_no_text_are_bad_usage(command: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="text in UTF-8 is needed"):
        call_command(*command)
