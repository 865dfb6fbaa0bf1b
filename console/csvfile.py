"""A list as a CSV file: bounded, streamed, and with nothing in it that a spreadsheet would compute."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _

LIMIT = 10_000
CHUNK = 500
"""Rows read and kept in memory at a time."""
BOM = "\ufeff"
"""Without it a spreadsheet takes UTF-8 for the encoding of its own country."""
_FORMULA = "=+-@＝＋－＠"
"""What begins a formula; some spreadsheets read the wide forms like the narrow ones."""
_STEPS = "\t\r\n"
_PARTS = re.compile(r"([;\t\r\n])")
"""Where a spreadsheet of another country, or one that takes several separators, begins a new cell."""


def guarded(value: Any) -> str:
    """Return the text of a cell; one that a spreadsheet could read as a formula begins with an apostrophe.

    So does each part of it that could become a cell of its own. A number is written as it is: it computes
    nothing, and has to be summed.
    """
    if value is None:
        return ""
    if isinstance(value, int | float | Decimal):
        return str(value)
    text = value.astimezone(UTC).isoformat(" ", "seconds") if isinstance(value, datetime) else str(value)
    first, *rest = _PARTS.split(text)
    if not rest:
        return _guarded(text)
    mark = "'" if text[0] in _STEPS else ""
    return mark + _guarded(first) + "".join(map(_guarded, rest))


def _guarded(part: str) -> str:
    """Guard one part; blanks and marks that nobody sees do not keep a spreadsheet from computing."""
    for character in part:
        if character in _FORMULA:
            return "'" + part
        if character.isprintable() and not character.isspace():
            break
    return part


def answer(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], complete: Callable[[], bool]
) -> StreamingHttpResponse:
    """Return the file. Rows after LIMIT are left out, and the last line says so.

    `complete` is asked after the rows and tells whether they were all that there is.
    """
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return StreamingHttpResponse(
        _lines(columns, rows, complete),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}-{moment}.csv"'},
    )


def _lines(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], complete: Callable[[], bool]
) -> Iterator[str]:
    writer = csv.writer(_Passing())
    yield BOM + writer.writerow(columns)
    count = 0
    for row in rows:
        if count == LIMIT:
            break
        count += 1
        yield writer.writerow([guarded(value) for value in row])
    else:
        if complete():
            return
    text = _("Not everything: there is more than these %(n)s rows. Filter the list to have the rest.")
    yield writer.writerow([text % {"n": f"{count:,}"}])


class _Passing:
    """Where the writer writes to: nothing is kept."""

    def write(self, text: str) -> str:
        return text
