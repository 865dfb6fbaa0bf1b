"""The lines of a run: one JSON object each, the first of which tells what it was run on."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.failed import BenchFailed
from bench.ground import SCRATCH

Line = dict[str, Any]


@dataclass
class Record:
    """What a run has measured so far; each line is on disk before the next measure begins."""

    path: Path
    lines: list[Line] = field(default_factory=list)

    @classmethod
    def start(cls, head: Line, folder: Path | None = None) -> "Record":
        """Open a new file, in var/bench/ unless told otherwise, named by the time."""
        folder = folder or SCRATCH
        folder.mkdir(parents=True, exist_ok=True)
        now = datetime.now(UTC)
        record = cls(folder / f"{now:%Y-%m-%dT%H-%M-%S}.jsonl")
        record.add({"measure": "run", "date": f"{now:%Y-%m-%d %H:%M} UTC", **head})
        return record

    def add(self, line: Line) -> None:
        """Append a line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.lines.append(line)


def read(path: Path | None, folder: Path | None = None) -> list[Line]:
    """Return the lines of a run; without a path those of the newest in a folder, var/bench/ unless told."""
    if path is None:
        runs = sorted((folder or SCRATCH).glob("*.jsonl"))
        if not runs:
            raise BenchFailed("nothing has been measured yet; `make bench` does.")
        path = runs[-1]
    try:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise BenchFailed(f"{path} cannot be read: {error}") from None


def select(lines: Iterable[Line], **wanted: Any) -> list[Line]:
    """Return the lines that say all this."""
    return [line for line in lines if all(line.get(name) == value for name, value in wanted.items())]
