"""The live line: only on a terminal, and never a reason to fail."""

from __future__ import annotations

import io
from typing import Any

import pytest

from jobs.worker.loop import Worker
from jobs.worker.status_line import StatusLine
from tests.worker.scene import kind


def line(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> tuple[StatusLine, io.StringIO]:
    out = io.StringIO()
    out.isatty = lambda: terminal  # type: ignore[method-assign]
    out.fileno = lambda: 2  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setattr("os.get_terminal_size", lambda _fd: type("S", (), {"columns": 40}))
    shown = StatusLine(Worker(kinds=[kind().name]))
    shown._drawn -= 5
    return shown, out


def test_on_a_terminal_it_is_rewritten_in_place_and_cut_to_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, out = line(monkeypatch, terminal=True)
    shown.worker.tally.committed = 1234
    shown.draw()
    assert out.getvalue().startswith("\r\x1b[Krunning 0 · waiting 0 · committed 1,234")
    assert len(out.getvalue().removeprefix("\r\x1b[K")) == 39


def test_elsewhere_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, out = line(monkeypatch, terminal=False)
    shown.draw()
    shown.clear()
    assert out.getvalue() == ""


def test_it_is_drawn_once_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, out = line(monkeypatch, terminal=True)
    shown.draw()
    first = out.getvalue()
    shown.draw()
    assert out.getvalue() == first


def test_a_terminal_that_went_away_ends_the_line_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, out = line(monkeypatch, terminal=True)

    def broken(_text: Any) -> Any:
        raise BrokenPipeError

    out.write = broken  # type: ignore[method-assign]
    shown.draw()
    assert not shown.shown


def test_without_stderr_there_is_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert not StatusLine(Worker(kinds=[kind().name])).shown
