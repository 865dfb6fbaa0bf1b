"""Plain text as HTML."""

import re
from collections.abc import Iterator
from html import escape

from demo.convert.request import Request

# An indented line, or a gap within one, was laid out by hand: keep it as it is.
LAID_OUT = re.compile(r"^[ \t]|\S(?: {3,}|\t)\S", re.MULTILINE)
BLANK = re.compile(r"\n(?:[ \t]*\n)+")
# A tree of the whole would take twenty times the text; of each part, it is forgotten.
PART_CHARS = 1024 * 1024


def read(content: str, _request: Request) -> tuple[list[str], list[str]]:
    """Make each run of lines a paragraph, or preformatted where its layout carries meaning."""
    return list(_parts(content.strip("\n"))), []


def _parts(content: str) -> Iterator[str]:
    part, chars = [], 0
    for run in _runs(content):
        html = _element(run)
        part.append(html)
        chars += len(html)
        if chars >= PART_CHARS:
            yield "\n".join(part) + "\n"
            part, chars = [], 0
    yield "\n".join(part)


def _runs(content: str) -> Iterator[str]:
    start = 0
    for blank in BLANK.finditer(content):
        yield content[start : blank.start()]
        start = blank.end()
    yield content[start:]


def _element(run: str) -> str:
    if LAID_OUT.search(run):
        return f"<pre>{escape(run)}</pre>"
    return "<p>" + escape(run.strip()).replace("\n", "<br>") + "</p>"
