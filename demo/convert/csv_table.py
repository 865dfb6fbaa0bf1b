"""A CSV from end to end, a row at a time: memory stays flat whatever its size."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from demo.convert.csv_look import Look, look
from demo.convert.csv_write import WRITERS, widths_of
from demo.convert.decode import Progress, TextSource
from demo.convert.errors import Code, ConversionRefused
from demo.convert.limits import Limits
from demo.convert.request import Request
from demo.convert.summary import Found

MOST_RAGGED = 100  # rows that are named one by one; all are counted
Row = list[str]


@dataclass(slots=True)
class Ragged:
    """The rows that have more or fewer cells than the first; they are kept as they are."""

    expected: int
    count: int = 0
    first: list[dict[str, int]] = field(default_factory=list)

    def note(self, row: int, line: int, cells: int) -> None:
        self.count += 1
        if len(self.first) < MOST_RAGGED:
            self.first.append({"row": row, "line": line, "cells": cells})

    def notes(self, rows: int) -> list[str]:
        if not self.count:
            return []
        one = self.first[0]
        where = f"row {one['row']} (line {one['line']}), with {one['cells']}"
        verb = "does" if self.count == 1 else "do"
        have = f"{self.count} of {rows} rows {verb} not have the {self.expected} cells of the first line"
        return [f"{have}: the first is {where}."]


def convert_table(text: TextSource, request: Request, target: BinaryIO, progress: Progress) -> Found:
    """Write the table as what was asked for; the first line that is not blank names the columns."""
    with text.opened() as sample:
        seen = look(sample)
    widths: list[int] = []
    if request.to == "text":  # columns can line up only when the widest cell of each is known
        with _rows(text, seen, request.limits, _half(progress, 0)) as rows:
            widths = widths_of(rows)
        progress = _half(progress, 1)

    with _rows(text, seen, request.limits, progress) as rows:
        columns, _ = next(rows, ([], 0))
        if not columns:
            raise ConversionRefused(Code.EMPTY, f"{request.name} is empty: it has nothing but blank lines.")
        write = WRITERS[request.to](request.name, columns, seen, widths, target)
        ragged, count = Ragged(len(columns)), 0
        for row, line in rows:
            count += 1
            if len(row) != len(columns):
                ragged.note(count, line, len(row))
            write.row(row)
        counts = {"rows": count, "columns": len(columns), "ragged": ragged.count}
        notes = ragged.notes(count)
        write.finish(counts, ragged.first, notes)
    return Found(request.name, text.encoding, counts, notes)


@contextmanager
def _rows(
    text: TextSource, seen: Look, limits: Limits, progress: Progress
) -> Iterator[Iterator[tuple[Row, int]]]:
    """Read rows, with the line each ends at; blank lines are no rows."""
    csv.field_size_limit(limits.line_chars)
    with text.opened(progress, newline="") as opened:

        def bounded() -> Iterator[str]:
            most = limits.line_chars
            while line := opened.readline(most):
                if len(line) == most and not line.endswith(("\n", "\r")):
                    raise ConversionRefused(
                        Code.TOO_LARGE,
                        f"{text.name} has a line longer than {most:,} characters, the limit, "
                        f"in line {reader.line_num + 1}.",
                    )
                yield line

        reader = csv.reader(bounded(), delimiter=seen.delimiter)

        def rows() -> Iterator[tuple[Row, int]]:
            try:
                for row in reader:
                    if len(row) > limits.columns:
                        raise ConversionRefused(
                            Code.TOO_LARGE,
                            f"{text.name} has {len(row):,} cells in line {reader.line_num}: "
                            f"the limit is {limits.columns:,}.",
                        )
                    if row:
                        yield row, reader.line_num
            except csv.Error as error:
                raise ConversionRefused(
                    Code.TOO_LARGE,
                    f"{text.name} has a cell longer than {limits.line_chars:,} characters, the limit, "
                    f"at line {reader.line_num}: is a quote left open?",
                ) from error

        yield rows()


def _half(progress: Progress, which: int) -> Progress:
    """Report one of two readings of the file as one half of the work."""
    return lambda done, total: progress((done + which * total) // 2, total)
