"""The three ways to write a table, a row at a time."""

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from html import escape
from typing import BinaryIO

from demo.convert import layout, page
from demo.convert.csv_look import Look
from demo.convert.printable import printable

# No cell has this character, so a row can be escaped as one string: five times as fast as cell by cell.
NUL = "\0"
Row = list[str]


class TableWriter(ABC):
    """Writes as it goes; a row is forgotten when the next comes."""

    def __init__(self, name: str, columns: Row, seen: Look, widths: list[int], target: BinaryIO) -> None:
        self.name, self.columns, self.seen, self.widths = name, columns, seen, widths
        self._out = io.TextIOWrapper(target, "utf-8", "replace", newline="\n")
        self.write = self._out.write
        self.begin()

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def row(self, row: Row) -> None: ...

    @abstractmethod
    def end(self, counts: dict[str, int], ragged: list[dict[str, int]], notes: list[str]) -> None: ...

    def finish(self, counts: dict[str, int], ragged: list[dict[str, int]], notes: list[str]) -> None:
        """Write what can be known only after the last row."""
        self.end(counts, ragged, notes)
        self._out.flush()
        self._out.detach()


class HtmlTable(TableWriter):
    """Nothing but escaped text comes between our own tags, so there is nothing to sanitise."""

    def begin(self) -> None:
        right = ", ".join(f"td:nth-child({column + 1})" for column in sorted(self.seen.numeric))
        style = "\nbody { max-width: none; }\ntd { white-space: pre-line; }"
        style += f"\n{right} {{ text-align: end; }}" if right else ""
        self.write(page.opening(self.name, extra_style=style))
        self.write(f"<table>\n<caption>{escape(printable(self.name))}</caption>\n<thead>\n")
        heads = self._escaped(self.columns, '</th><th scope="col">')
        self.write(f'<tr><th scope="col">{heads}</th></tr>\n</thead>\n<tbody>\n')

    def row(self, row: Row) -> None:
        self.write(f"<tr><td>{self._escaped(row, '</td><td>')}</td></tr>\n")

    def end(self, counts: dict[str, int], ragged: list[dict[str, int]], notes: list[str]) -> None:
        self.write("</tbody>\n</table>\n")
        self.write(f"<p>{counts['rows']} rows, {counts['columns']} columns.</p>\n")
        for note in notes:
            self.write(f"<p>{escape(note)}</p>\n")
        self.write(page.CLOSING)

    @staticmethod
    def _escaped(row: Row, between: str) -> str:
        return escape(shown(row)).replace(NUL, between)


class JsonTable(TableWriter):
    """One array a row, as it was in the file; the counts come last."""

    def begin(self) -> None:
        self._encode = json.JSONEncoder(ensure_ascii=False).encode
        self._between = "\n"
        head = {"source": self.name, "kind": "csv", "delimiter": self.seen.delimiter, "columns": self.columns}
        self.write(self._encode(head)[:-1] + ', "rows": [')

    def row(self, row: Row) -> None:
        self.write(self._between + self._encode(row))
        self._between = ",\n"

    def end(self, counts: dict[str, int], ragged: list[dict[str, int]], notes: list[str]) -> None:
        tail = {"counts": counts, "ragged": ragged, "notes": notes}
        self.write("\n], " + self._encode(tail)[1:] + "\n")


class TextTable(TableWriter):
    """Columns that line up, numbers on the right."""

    def begin(self) -> None:
        right = self.seen.numeric
        # Nearly every row fits this; the others are laid out cell by cell.
        self._format = layout.GAP.join(
            f"%{'' if column in right else '-'}{width}s" for column, width in enumerate(self.widths)
        )
        self.row(self.columns)
        self.write(layout.rule(self.widths) + "\n")

    def row(self, row: Row) -> None:
        text = shown(row)
        cells = text.split(NUL)
        if layout.plain(text) and len(cells) == len(self.widths) and max(map(len, cells)) <= layout.WIDE:
            self.write((self._format % tuple(cells)).rstrip() + "\n")
            return
        for line in layout.lines(cells, self.widths, self.seen.numeric):
            self.write(line + "\n")

    def end(self, counts: dict[str, int], ragged: list[dict[str, int]], notes: list[str]) -> None:
        self.write(f"\n{counts['rows']} rows, {counts['columns']} columns.\n")
        for note in notes:
            self.write(note + "\n")


def widths_of(rows: Iterable[tuple[Row, int]]) -> list[int]:
    """Return the width of each column, from the whole table."""
    widths: list[int] = []
    for row, _ in rows:
        text = shown(row)
        if len(row) == len(widths) and layout.plain(text):
            widths = list(map(max, widths, map(len, row)))
        else:
            layout.measure(widths, text.split(NUL))
    return [min(each, layout.WIDE) for each in widths]


def shown(row: Row) -> str:
    """Return a row as one string, its cells divided by NUL, safe to look at."""
    text = NUL.join(row)
    return printable(text.replace("\r\n", "\n") if "\r" in text else text)


WRITERS: dict[str, type[TableWriter]] = {"html": HtmlTable, "json": JsonTable, "text": TextTable}
