"""The synthetic outside acts, and then may not answer."""

import pytest

from jobs.drills.outside import OutsideLedger


def test_an_action_without_an_answer_has_taken_place(tmp_path):
    outside = OutsideLedger(tmp_path / "outside")
    with pytest.raises(TimeoutError):
        outside.act("j1", "A", answers=False)
    assert outside.count("j1") == 1


def test_actions_are_counted_for_each_job_and_survive_reopening(tmp_path):
    path = tmp_path / "outside"
    assert OutsideLedger(path).act("j1", "A", answers=True) == 1
    assert OutsideLedger(path).act("j1", "B", answers=True) == 2
    assert OutsideLedger(path).act("j10", "B", answers=True) == 1
    assert OutsideLedger(path).count("j1") == 2
