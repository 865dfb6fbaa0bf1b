"""The supervisor behind `make run`: its port, its children and its end."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from config import serve
from config.env import ROOT

# Prints its number, then lives until it is told to end.
PATIENT = [sys.executable, "-c", "import os, signal; print(os.getpid(), flush=True); signal.pause()"]
PARENT = f"""
import signal
from config import serve
serve.start("child", {PATIENT!r})
signal.pause()
"""


@pytest.fixture
def asked():
    """A descriptor on which nobody has asked anything."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    yield read
    os.close(read)
    os.close(write)


def test_taken_port_gives_the_next_free_one():
    with serve.listen("127.0.0.1", 20_000) as first:
        port = first.getsockname()[1]
        with serve.listen("127.0.0.1", port) as second:
            assert second.getsockname()[1] > port


def test_socket_accepts_before_any_server_runs():
    """The printed URL is good at once: a browser that is quicker than the server waits."""
    with serve.listen("127.0.0.1", 20_000) as listener, socket.create_connection(listener.getsockname()):
        pass


def test_address_of_another_machine_is_one_sentence():
    with pytest.raises(serve.NoPort, match=r"WEB_HOST names 192.0.2.1, which cannot be listened on"):
        serve.listen("192.0.2.1", 20_000)


def test_no_free_port_is_one_sentence(monkeypatch):
    with serve.listen("127.0.0.1", 20_000) as taken:
        monkeypatch.setattr(serve, "NEIGHBOURS", 0)
        with pytest.raises(serve.NoPort, match="set WEB_PORT to another"):
            serve.listen("127.0.0.1", taken.getsockname()[1])


def test_stop_ends_every_child(asked):
    children = [serve.start(name, PATIENT) for name in ("one", "two")]
    serve.stop(asked, children)
    assert [child.process.returncode for child in children] == [-signal.SIGTERM] * 2


def test_stop_kills_a_child_that_does_not_listen(asked, monkeypatch, tmp_path):
    monkeypatch.setattr(serve, "PATIENCE_SECONDS", 0.1)
    started = tmp_path / "started"
    os.mkfifo(started)
    # An ignored signal stays ignored across exec; the pipe says when that point is reached.
    deaf = serve.start("deaf", ["sh", "-c", f"trap '' TERM; echo > {started}; exec sleep 1000"])
    started.read_text()
    serve.stop(asked, [deaf])
    assert deaf.process.returncode == -signal.SIGKILL


def test_wait_tells_an_ended_child_from_a_signal(asked):
    lasting, brief = serve.start("lasting", PATIENT), serve.start("brief", ["true"])
    assert serve.wait(asked, [lasting, brief]) is brief
    serve.stop(asked, [lasting, brief])


def test_child_ends_when_the_supervisor_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    child = os.pidfd_open(int(parent.stdout.readline()))
    parent.send_signal(signal.SIGKILL)
    parent.wait(10)
    ended, _, _ = select.select([child], [], [], 30)
    os.close(child)
    assert ended, "the child outlived its supervisor"


def test_interrupt_during_set_up_stops_it_and_is_no_failure(tmp_path):
    """The whole program, stopped as Ctrl-C would while it waits for its first step."""
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    code = f"""
import sys
from config import serve
asked = serve._signals()
child = serve.start("set-up", {PATIENT!r})
open({str(ready)!r}, "w").close()
ended = serve.wait(asked, [child])
serve.stop(asked, [child])
sys.exit(0 if ended is None else 1)
"""
    program = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL)
    ready.read_text()
    program.send_signal(signal.SIGINT)
    assert program.wait(30) == 0


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """The payment service's ledger, and nobody who knows of a service yet."""
    path = tmp_path / "made" / "ledger.sqlite3"
    monkeypatch.setattr(serve, "PROVIDER_LEDGER", path)
    monkeypatch.setenv("DEMO_PROVIDER_URL", "")
    return path


def test_payment_service_is_told_to_whoever_starts_after_it_and_ends_with_the_rest(asked, ledger):
    service = serve.start_provider(asked)
    url = os.environ["DEMO_PROVIDER_URL"]
    with urllib.request.urlopen(url) as answer:
        assert b"provider" in answer.read()
    assert ledger.exists()
    serve.stop(asked, [service])
    assert service.process.returncode == 0


def test_payment_service_that_cannot_start_says_why_itself(asked, ledger, capfd):
    ledger.mkdir(parents=True)
    with pytest.raises(subprocess.CalledProcessError):
        serve.start_provider(asked)
    assert "cannot be opened" in capfd.readouterr().err
    assert os.environ["DEMO_PROVIDER_URL"] == ""


def test_interrupt_while_the_payment_service_starts_stops_it(ledger):
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.write(write, b"\0")
    with pytest.raises(serve.Asked):
        serve.start_provider(read)
    os.close(read)
    os.close(write)
    assert os.environ["DEMO_PROVIDER_URL"] == ""


PRODUCT = """
import sys
from config import serve
serve.WORKER = {worker!r}
serve.QUICK_SECONDS = {quick!r}
sys.exit(serve.main([]))
"""


def run_product(folder, worker, quick=60.0, **environ):
    """Start the whole program on a database and a port of its own, with this in the worker's place.

    `quick`: a worker that lives for fewer seconds is not replaced.
    """
    environ = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{folder}/product.sqlite3",
        "STATIC_ROOT": f"{folder}/static",
        "WEB_PORT": "20000",
        **environ,
    }
    code = PRODUCT.format(worker=worker, quick=quick)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_product_serves_from_an_empty_folder_until_it_is_asked_to_stop(tmp_path):
    program = run_product(tmp_path, PATIENT, STATIC_HASHED="1")
    assert program.stdout
    printed = []
    for line in program.stdout:
        printed.append(line)
        if address := re.search(r"http://localhost:(\d+)/", line):
            break
    else:
        pytest.fail(program.communicate()[1])
    with urllib.request.urlopen(f"{address[0]}healthz") as answer:
        assert answer.read() == b"ok\n"
    program.send_signal(signal.SIGINT)
    out, _ = program.communicate(timeout=60)
    assert program.returncode == 0
    assert out.endswith("serve: stopped\n")
    assert any("migrations" in line for line in printed)
    assert (tmp_path / "static" / "staticfiles.json").exists()


def test_worker_that_ends_as_soon_as_it_starts_stops_the_rest_and_is_said(tmp_path):
    program = run_product(tmp_path, ["false"])
    _, err = program.communicate(timeout=60)
    assert program.returncode == 1
    assert "serve: the worker ended by itself (code 1), so the rest was stopped\n" in err


def test_worker_that_was_killed_is_replaced_and_the_rest_goes_on(tmp_path):
    program = run_product(tmp_path, PATIENT, quick=0)
    assert program.stdout
    workers = (int(line) for line in program.stdout if line.strip().isdigit())
    first = next(workers)
    os.kill(first, signal.SIGKILL)
    assert next(workers) != first
    program.send_signal(signal.SIGINT)
    out, _ = program.communicate(timeout=60)
    assert program.returncode == 0
    assert out.endswith("serve: stopped\n")


def test_database_that_cannot_be_used_is_one_sentence(tmp_path):
    program = run_product(tmp_path, PATIENT, DATABASE_URL=f"postgresql:///none?host={tmp_path}")
    out, err = program.communicate(timeout=60)
    assert program.returncode == 1
    assert err.startswith("setup: the database cannot be used: ")
    assert (err.count("\n"), out) == (1, "")
