"""A look at the beginning of a CSV: what separates its cells, which columns hold numbers."""

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TextIO

SAMPLE_CHARS = 64 * 1024
SAMPLE_ROWS = 200
# In this order when the choice is even: a comma occurs in numbers and prose, a tab hardly anywhere.
DELIMITERS = "\t;|,"
NUMBER = re.compile(r"[-+−]?(?:\d[\d.,' ]*)?\d(?:[.,]\d+)?\s?[%€$£]?|")


@dataclass(frozen=True, slots=True)
class Look:
    delimiter: str
    numeric: frozenset[int]  # columns to align on the right; a matter of looks only


def look(text: TextIO) -> Look:
    sample = text.read(SAMPLE_CHARS)
    whole = len(sample) < SAMPLE_CHARS
    delimiter, best = ",", 0.0
    for candidate in DELIMITERS:
        agreement = _agreement(_sampled(sample, candidate, whole))
        if agreement > best:
            delimiter, best = candidate, agreement
    return Look(delimiter, _numeric(_sampled(sample, delimiter, whole)))


def _sampled(sample: str, delimiter: str, whole: bool) -> list[list[str]]:
    try:
        rows = list(islice(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter), SAMPLE_ROWS + 1))
    except csv.Error:  # a quote left open: the reading proper will say so
        return []
    if not whole or len(rows) > SAMPLE_ROWS:
        rows.pop()  # the last is cut
    return [row for row in rows if row]


def _agreement(rows: list[list[str]]) -> float:
    """Return the share of rows that have the most frequent number of cells; 0 if that is one."""
    if not rows:
        return 0.0
    cells, times = Counter(map(len, rows)).most_common(1)[0]
    return times / len(rows) if cells > 1 else 0.0


def _numeric(rows: list[list[str]]) -> frozenset[int]:
    if len(rows) < 2:
        return frozenset()
    body = rows[1:]
    return frozenset(
        column
        for column in range(len(rows[0]))
        if any(len(row) > column and row[column] for row in body)
        and all(len(row) <= column or NUMBER.fullmatch(row[column].strip()[:40]) for row in body)
    )
