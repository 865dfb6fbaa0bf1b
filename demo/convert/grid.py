"""One table of a page, as it is being read."""

from demo.convert.blocks import Block


class Grid:
    """Cells by row; a table within a cell is text of that cell."""

    def __init__(self, depth: int) -> None:
        self.in_cell = False
        self._depth = depth
        self._rows: list[list[str]] = []
        self._heads: list[bool] = []  # by row: whether all its cells are headings
        self._inner = 0

    def start(self, tag: str) -> bool:
        """Take an opening tag; true if a cell begins."""
        if tag == "table":
            self._inner += 1
        if self._inner:
            return False
        if tag == "tr" or not self._rows:
            self._rows.append([])
            self._heads.append(True)
        if tag in ("td", "th"):
            self._heads[-1] = self._heads[-1] and tag == "th"
            self.in_cell = True
            return True
        return False

    def end(self, tag: str) -> bool:
        """Take a closing tag; true if a cell ends, whose text is then put."""
        if tag == "table" and self._inner:
            self._inner -= 1
            return False
        return self.in_cell and not self._inner and tag in ("td", "th")

    def put(self, text: str) -> None:
        self._rows[-1].append(text)
        self.in_cell = False

    def block(self) -> Block:
        headed = [(row, head) for row, head in zip(self._rows, self._heads, strict=True) if row]
        first = headed[0][0] if headed and headed[0][1] else []
        rows = [row for row, _ in headed]
        return Block("table", depth=self._depth, columns=first, rows=rows[1:] if first else rows)
