"""A document that was read, and the three ways to write it."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import PurePath

from demo.convert import layout, page
from demo.convert.blocks import Block, Link
from demo.convert.outline import outline
from demo.convert.printable import printable
from demo.convert.request import Request
from demo.convert.sanitise import clean
from demo.convert.survey import survey

TOGETHER = {("item", "item"), ("term", "definition"), ("definition", "definition")}  # no blank line between
# A reader returns the document as HTML, in parts that each stand alone, and its notes.
Reader = Callable[[str, Request], tuple[list[str], list[str]]]


@dataclass(frozen=True, slots=True)
class Document:
    """All targets are written from the same sanitised body, so they agree with each other."""

    source: str
    kind: str
    title: str
    body: list[str]
    blocks: list[Block]
    links: list[Link]
    notes: list[str]

    def counts(self) -> dict[str, int]:
        kinds = Counter(block.kind for block in self.blocks)
        return {
            "words": sum(block.words() for block in self.blocks),
            "blocks": len(self.blocks),
            "headings": kinds["heading"],
            "paragraphs": kinds["paragraph"] + kinds["quote"],
            "tables": kinds["table"],
            "links": len(self.links),
        }


def read(content: str, request: Request, reader: Reader) -> Document:
    """Read a document through HTML: as its kind, then surveyed, sanitised and outlined."""
    parts, notes = reader(content, request)
    seen = survey(parts, request.name, request.limits.depth)
    body = [clean(part) for part in parts]
    found = outline(body, request.name, request.limits.depth)
    return Document(
        source=request.name,
        kind=request.kind,
        title=printable(seen.title) or _first_heading(found.blocks) or PurePath(request.name).stem,
        body=body,
        blocks=found.blocks,
        links=found.links,
        notes=notes + seen.notes,
    )


def as_html(document: Document, _content: str) -> Iterator[str]:
    yield page.opening(document.title)
    yield from map(printable, document.body)
    yield page.CLOSING


def as_json(document: Document, _content: str) -> Iterator[str]:
    """Write the structure that README.md describes, a block a line."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    head = {"source": document.source, "kind": document.kind, "title": document.title}
    tail = {
        "counts": document.counts(),
        "headings": [{"level": b.level, "text": b.text} for b in document.blocks if b.kind == "heading"],
        "links": [asdict(link) for link in document.links],
        "notes": document.notes,
    }
    yield encode(head)[:-1] + ', "blocks": ['
    between = "\n"
    for block in document.blocks:
        yield between + encode(block.as_json())
        between = ",\n"
    yield "\n], " + encode(tail)[1:] + "\n"


def as_text(document: Document, content: str) -> Iterator[str]:
    """Write blocks with a blank line between them; plain text stays as it was."""
    if document.kind == "text":
        yield printable(content).strip("\n") + "\n"
        return
    previous = ""
    for block in document.blocks:
        if previous and (previous, block.kind) not in TOGETHER:
            yield "\n"
        for line in _lines(block):
            yield line + "\n"
        previous = block.kind
    if document.links:
        yield "\nLinks\n-----\n"
        for link in document.links:
            yield f"{link.text or '(no text)'}: {link.target}\n"


WRITERS: dict[str, Callable[[Document, str], Iterator[str]]] = {
    "html": as_html,
    "json": as_json,
    "text": as_text,
}


def _lines(block: Block) -> Iterator[str]:
    indent = "  " * block.depth
    if block.kind == "heading":
        yield block.text
        yield {1: "=", 2: "-"}.get(block.level, "~") * max(3, layout.width(block.text))
    elif block.kind == "item":
        first = "  " * max(0, block.depth - 1) + block.marker + " "
        yield from layout.wrapped(block.text, first, " " * len(first))
    elif block.kind == "quote":
        yield from layout.wrapped(block.text, "> " * block.depth, "> " * block.depth)
    elif block.kind == "definition":
        yield from layout.wrapped(block.text, indent + "    ", indent + "    ")
    elif block.kind == "code":
        yield from (f"{indent}    {line}".rstrip() for line in block.text.split("\n"))
    elif block.kind == "table":
        yield from _table_lines(block)
    elif block.kind == "rule":
        yield "* * *"
    else:
        yield from layout.wrapped(block.text, indent, indent)


def _table_lines(block: Block) -> Iterator[str]:
    widths: list[int] = []
    for row in [block.columns, *block.rows]:
        layout.measure(widths, row)
    if block.columns:
        yield from layout.lines(block.columns, widths)
        yield layout.rule(widths)
    for row in block.rows:
        yield from layout.lines(row, widths)


def _first_heading(blocks: list[Block]) -> str:
    return next((block.text for block in blocks if block.kind == "heading"), "")
