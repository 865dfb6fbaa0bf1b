"""The outside world of a drill: it acts, remembers that it acted, and may fail to answer."""

from __future__ import annotations

from pathlib import Path


class OutsideLedger:
    """What took place outside, a line each, in a file that no database transaction reaches."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def act(self, job_id: str, actor: str, *, answers: bool) -> int:
        """Perform the action for `job_id`; returns how often it has taken place for it.

        Raises TimeoutError when it does not answer: the action has taken place all the same.
        """
        with self.path.open("a", encoding="utf-8") as ledger:
            ledger.write(f"{job_id}\t{actor}\n")
        if not answers:
            raise TimeoutError
        return self.count(job_id)

    def count(self, job_id: str) -> int:
        """Return how often the action has taken place for `job_id`."""
        if not self.path.exists():
            return 0
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return sum(line.startswith(f"{job_id}\t") for line in lines)
