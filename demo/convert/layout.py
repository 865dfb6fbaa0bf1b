"""Plain text that lines up."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

WIDE = 60  # a longer cell goes on in the next line
GAP = "  "


class _Widths(dict[str, int]):
    """The columns that a character takes, looked up once for each."""

    def __missing__(self, char: str) -> int:
        wide = 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        self[char] = wide
        return wide


_width_of = _Widths().__getitem__
# Up to here each character takes one column.
_LATIN = re.compile("[^\n\u0300-\U0010ffff]*")


def plain(text: str) -> bool:
    """Whether each character takes one column and all stand on one line."""
    return "\n" not in text if text.isascii() else _LATIN.fullmatch(text) is not None


def width(text: str) -> int:
    """Count the columns that a text of one line takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_width_of, text))


def measure(widths: list[int], row: Iterable[str]) -> None:
    """Widen the columns to hold this row, up to WIDE."""
    for column, cell in enumerate(row):
        wanted = min(WIDE, max(map(width, cell.split("\n"))))
        if column == len(widths):
            widths.append(wanted)
        elif wanted > widths[column]:
            widths[column] = wanted


def lines(row: Sequence[str], widths: Sequence[int], right: frozenset[int] = frozenset()) -> Iterator[str]:
    """Lay out one row: a line, or several when a cell is wide or has lines of its own."""
    columns = [list(_padded(cell, widths[at], at in right)) for at, cell in enumerate(row)]
    blanks = [" " * each for each in widths]
    for line in zip_longest(*columns):
        parts = (part if part is not None else blank for part, blank in zip(line, blanks, strict=False))
        yield GAP.join(parts).rstrip()


def _padded(cell: str, wide: int, to_the_right: bool) -> Iterator[str]:
    """Split a cell at its own lines, and those at WIDE, and fill each piece up."""
    for line in cell.split("\n"):
        for piece, used in _pieces(line):
            blank = " " * (wide - used)
            yield blank + piece if to_the_right else piece + blank


def _pieces(line: str) -> Iterator[tuple[str, int]]:
    wide = width(line)
    if wide <= WIDE:
        yield line, wide
        return
    if line.isascii():
        yield from ((line[at : at + WIDE], min(WIDE, wide - at)) for at in range(0, wide, WIDE))
        return
    piece: list[str] = []
    used = 0
    for char in line:
        wide = _width_of(char)
        if used + wide > WIDE:
            yield "".join(piece), used
            piece, used = [], 0
        piece.append(char)
        used += wide
    yield "".join(piece), used


def rule(widths: Sequence[int]) -> str:
    return GAP.join("-" * each for each in widths)


def wrapped(text: str, first: str, rest: str, columns: int = 88) -> Iterator[str]:
    """Fill lines with words; the time it takes grows with the text and no faster."""
    indent = first
    for line in text.split("\n"):
        words: list[str] = []
        used = width(indent)
        for word in line.split():
            wide = width(word)
            if words and used + wide > columns:
                yield indent + " ".join(words)
                indent, words, used = rest, [], width(rest)
            words.append(word)
            used += wide + 1
        yield (indent + " ".join(words)).rstrip()
        indent = rest
