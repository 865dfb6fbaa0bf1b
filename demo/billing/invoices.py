"""A file of invoices, read to its end before anything is done with it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from demo.billing.kinds import charge
from jobs.handlers import Options
from jobs.models import Job
from jobs.outcomes import Enqueued

FIELDS = ("invoice", "account", "amount", "currency")
MOST_ROWS = 10_000
SHAPES = {
    "invoice": (re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,59}"), "letters, digits and ._/- only, at most 60"),
    "account": (re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"), "letters, digits and ._- only, at most 100"),
    "amount": (
        re.compile(r"(?!0+(?:\.0+)?$)[0-9]{1,12}\.[0-9]{2}"),
        "a positive amount with two decimals, as in 12.50",
    ),
    "currency": (re.compile(r"[A-Z]{3}"), "three capital letters"),
}


class BadFile(Exception):
    """A file that cannot be billed; `problems` are sentences, each naming line and field."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Invoice:
    """One row."""

    line: int
    invoice: str
    account: str
    amount: str
    currency: str

    @property
    def key(self) -> str:
        """The unique key of its job: an invoice is billed once, whichever file it comes from."""
        return f"invoice:{self.invoice}"

    @property
    def arguments(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in FIELDS}


def read(path: Path) -> list[Invoice]:
    """Return the invoices of a CSV file; raises BadFile with every problem there is, or OSError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(_rows(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadFile(f"this is no CSV in UTF-8 ({error})") from None
    if not rows or tuple(rows[0][1]) != FIELDS:
        raise BadFile(f"line 1: the first line must be {','.join(FIELDS)}")
    if not rows[1:]:
        raise BadFile("there is no invoice in it")
    problems: list[str] = []
    invoices = [found for line, cells in rows[1:] if (found := _invoice(line, cells, problems))]
    first: dict[str, int] = {}
    problems += [
        f"line {one.line}, invoice: {one.invoice} is on line {first[one.invoice]} too"
        for one in invoices
        if first.setdefault(one.invoice, one.line) != one.line
    ]
    if problems:
        raise BadFile(*problems)
    return invoices


def bill(invoices: list[Invoice], *, by: str) -> list[Enqueued]:
    """Enqueue a job for each invoice, all or none, in the caller's transaction.

    Raises BadFile where an invoice has been billed before with something else in it; the caller rolls back.
    """
    calls = [
        (
            charge.name,
            one.arguments,
            Options(unique_key=one.key, unique_scope="ever", enqueued_by=by),
        )
        for one in invoices
    ]
    answers = Job.objects.enqueue_many(calls)
    done = [answer for answer in answers if isinstance(answer, Enqueued)]
    if len(done) < len(answers):
        raise BadFile(
            *(
                f"line {one.line}, invoice: {one.invoice} has been billed before, with another account,"
                " amount or currency"
                for one, answer in zip(invoices, answers, strict=True)
                if not isinstance(answer, Enqueued)
            )
        )
    return done


def _rows(file: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(file, strict=True)
    for number, cells in enumerate(reader):
        if number > MOST_ROWS:
            raise BadFile(f"line {reader.line_num}: more than {MOST_ROWS} invoices; divide the file")
        if cells:
            yield reader.line_num, cells


def _invoice(line: int, cells: list[str], problems: list[str]) -> Invoice | None:
    """Return the invoice of a row, or None having said what is wrong with it."""
    if len(cells) != len(FIELDS):
        problems.append(f"line {line}: there are {len(cells)} fields, not {len(FIELDS)}")
        return None
    row = dict(zip(FIELDS, cells, strict=True))
    wrong = [name for name, (shape, _) in SHAPES.items() if not shape.fullmatch(row[name])]
    problems += [f"line {line}, {name}: {row[name][:60]!r} must be {SHAPES[name][1]}" for name in wrong]
    return None if wrong else Invoice(line, **row)
