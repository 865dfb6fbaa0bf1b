"""What a document consists of, in reading order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Block:
    """One piece of a document.

    `kind` is heading, paragraph, item, quote, term, definition, code, table or
    rule. `depth` says how many lists and quotes it stands in: the structure is
    flat, so that no document can make it too deep to read.
    """

    kind: str
    text: str = ""
    depth: int = 0
    level: int = 0  # heading: 1 to 6
    marker: str = ""  # item: "-" or "3."
    language: str = ""  # code
    columns: Sequence[str] = ()  # table
    rows: Sequence[Sequence[str]] = ()  # table

    def as_json(self) -> dict[str, Any]:
        """Return what is filled in; a table always has its columns and rows."""
        kept = {
            "depth": self.depth,
            "level": self.level,
            "marker": self.marker,
            "language": self.language,
        }
        body: dict[str, Any] = {} if self.kind == "rule" else {"text": self.text}
        if self.kind == "table":
            body = {"columns": self.columns, "rows": self.rows}
        return {"kind": self.kind, **{key: value for key, value in kept.items() if value}, **body}

    def words(self) -> int:
        cells = [self.columns, *self.rows]
        return len(self.text.split()) + sum(len(cell.split()) for row in cells for cell in row)


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    target: str
