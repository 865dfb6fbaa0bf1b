"""Throw-away PostgreSQL servers: theirs are the settings asked for, and nothing stays behind."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from config.env import ROOT
from tests import pgtemp

OWNER = """
import sys
from tests import pgtemp
with pgtemp.server() as postgres:
    print(postgres.base, postgres.process.pid, flush=True)
    sys.stdin.read()
"""


def test_server_has_the_settings_asked_for_and_leaves_nothing():
    with pgtemp.server(fsync="on", max_connections="17") as postgres:
        with psycopg.connect(postgres.url) as connection:
            row = connection.execute("SELECT current_setting('fsync'), current_setting('max_connections')")
            assert row.fetchone() == ("on", "17")
        base = postgres.base
        assert base.exists()
    assert not base.exists()


def test_committed_row_survives_kill_and_restart():
    with pgtemp.server(fsync="on", synchronous_commit="on") as postgres:
        with psycopg.connect(postgres.url) as connection:
            connection.execute("CREATE TABLE kept (n int)")
            connection.execute("INSERT INTO kept VALUES (1)")
        postgres.kill()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(postgres.url)
        postgres.start()
        postgres.restart()
        with psycopg.connect(postgres.url) as connection:
            assert connection.execute("SELECT n FROM kept").fetchone() == (1,)


def test_server_and_folder_go_when_their_owner_is_killed():
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout
    base, pid = owner.stdout.readline().split()
    server = os.pidfd_open(int(pid))
    owner.send_signal(signal.SIGKILL)
    owner.wait(10)
    ended, _, _ = select.select([server], [], [], 30)
    os.close(server)
    assert ended, "the server outlived its owner"
    wait_until_gone(Path(base))


def wait_until_gone(folder: Path) -> None:
    """Return once the folder is gone, however long the keeper takes within reason."""
    for _ in range(300):
        if not folder.exists():
            return
        select.select([], [], [], 0.1)
    pytest.fail(f"{folder} was left behind")


def test_missing_programs_are_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PG_BIN", str(tmp_path))
    with pytest.raises(pgtemp.NoServer, match=r"PG_BIN names .*, which holds no postgres program"):
        pgtemp.find_binaries()


def test_server_that_refuses_its_settings_says_why():
    with pytest.raises(pgtemp.NoServer, match="max_connections"), pgtemp.server(max_connections="many"):
        pass
