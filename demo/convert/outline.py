"""The blocks and links of a sanitised page."""

import re
from collections.abc import Iterable

from demo.convert.blocks import Block, Link
from demo.convert.grid import Grid
from demo.convert.printable import printable
from demo.convert.survey import Depth, feed

HEADINGS = {f"h{level}": level for level in range(1, 7)}
# What ends a run of text and begins another.
_BREAKS = """
    address article aside blockquote body caption dd details div dl dt figcaption figure footer
    h1 h2 h3 h4 h5 h6 header hr html li main nav ol p pre section summary table tbody td tfoot th thead tr ul
"""
BREAKS = frozenset(_BREAKS.split())
LINE = "\0"  # a line break that is meant; no text has this character
LANGUAGE = re.compile(r"language-(\S+)|code (\S+)")


class Outline(Depth):
    """Blocks as the parser meets them; nothing of the page's tree is kept."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(name, limit)
        self.blocks: list[Block] = []
        self.links: list[Link] = []
        self._text: list[str] = []
        self._lists: list[int | None] = []  # the next number of each open list, None without numbers
        self._quotes = 0
        self._pre = 0
        self._next = Block("paragraph")  # what the text being read will be
        self._grid: Grid | None = None
        self._link: tuple[str, int] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        super().start(tag, attributes)
        if tag in BREAKS:
            self._break()
        if tag == "a":
            self._link = attributes.get("href", ""), len(self._text)
        elif tag == "br":
            self._text.append("\n" if self._pre else LINE)
        elif tag == "img":
            self._text.append(f"[image: {attributes['alt']}]" if attributes.get("alt") else "")
        elif self._grid is not None:
            if self._grid.start(tag):
                self._text.clear()
        elif tag == "table":
            self._grid = Grid(self._depth)
        else:
            self._start_block(tag, attributes)

    def end(self, tag: str) -> None:
        super().end(tag)
        if tag == "a" and self._link is not None:
            self._end_link(*self._link)
        grid = self._grid
        if grid is not None and grid.end(tag):
            grid.put(self._taken())
        elif tag in BREAKS:
            self._break()
        if grid is None:
            self._end_block(tag)
        elif tag == "table" and not grid.in_cell:
            self.blocks.append(grid.block())
            self._grid = None

    def data(self, text: str) -> None:
        self._text.append(text)

    def close(self) -> None:
        self._break()

    # -- blocks --

    @property
    def _depth(self) -> int:
        return len(self._lists) + self._quotes

    def _start_block(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in HEADINGS:
            self._next = Block("heading", level=HEADINGS[tag])
        elif tag in ("ul", "ol"):
            start = attributes.get("start", "1")
            self._lists.append(
                None if tag == "ul" else int(start) if start.isdecimal() and len(start) < 10 else 1
            )
        elif tag == "li":
            self._next = Block("item", marker=self._marker())
        elif tag == "blockquote":
            self._quotes += 1
        elif tag in ("dt", "dd"):
            self._next = Block("term" if tag == "dt" else "definition")
        elif tag == "hr":
            self.blocks.append(Block("rule"))
        elif tag == "pre":
            self._pre += 1
            self._next = Block("code")
        if self._pre and tag in ("pre", "code") and (named := LANGUAGE.match(attributes.get("class", ""))):
            self._next.language = named[1] or named[2]

    def _end_block(self, tag: str) -> None:
        if tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "blockquote":
            self._quotes -= 1
        elif tag == "pre":
            self._pre -= 1
        if tag in ("li", "dt", "dd", "pre", *HEADINGS):
            self._next = Block("paragraph")

    def _marker(self) -> str:
        if not self._lists or self._lists[-1] is None:
            return "-"
        number = self._lists[-1]
        self._lists[-1] = number + 1
        return f"{number}."

    def _break(self) -> None:
        """End the run of text: a space within a table, a block elsewhere."""
        if self._grid is not None and self._grid.in_cell:
            self._text.append(" ")
            return
        block, text = self._next, self._taken(keep=self._next.kind == "code")
        if not text:
            return
        block.text = text
        block.depth = self._depth
        if block.kind == "paragraph" and self._quotes and not self._lists:
            block.kind = "quote"
        self.blocks.append(block)
        self._next = Block("code" if self._pre else "paragraph")

    def _taken(self, *, keep: bool = False) -> str:
        text = "".join(self._text)
        self._text.clear()
        if self._link is not None:  # it goes on in the next block
            self._link = self._link[0], 0
        if keep:
            return printable(text.strip("\n"))
        return printable("\n".join(" ".join(line.split()) for line in text.split(LINE)).strip())

    # -- links --

    def _end_link(self, target: str, since: int) -> None:
        text = " ".join("".join(self._text[since:]).replace(LINE, " ").split())
        if target and not target.startswith("#"):  # a place in this page is no link to elsewhere
            self.links.append(Link(printable(text), printable(target)))
        self._link = None


def outline(parts: Iterable[str], name: str, limit: int) -> Outline:
    """Read a sanitised body; refuse it if the sanitiser's parser nested it beyond the limit."""
    read = Outline(name, limit)
    feed(parts, read)
    return read
