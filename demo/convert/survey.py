"""A first look at HTML that somebody wrote, before any tree is built of it."""

from collections import Counter
from collections.abc import Iterable

from lxml import etree

from demo.convert import verdict
from demo.convert.errors import ConversionRefused
from demo.convert.sanitise import LEFT_OUT

CHUNK = 1024 * 1024


class Depth:
    """Refuse a document nested beyond the limit, at the element that is.

    The sanitiser takes minutes for 200,000 elements inside one another, this a moment.
    """

    def __init__(self, name: str, limit: int) -> None:
        self.name, self.limit = name, limit
        # html and body are there in every document, and not its author's doing.
        self.level = -2

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.level += 1
        if self.level > self.limit:
            raise ConversionRefused(*verdict.too_deep(self.name, self.limit))

    def end(self, tag: str) -> None:
        self.level -= 1

    def data(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


class Survey(Depth):
    """The title of a page, and what of it will be left out."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(name, limit)
        self.left_out: Counter[str] = Counter()
        self._title: list[str] = []
        self._in_title = False

    @property
    def title(self) -> str:
        return " ".join("".join(self._title).split())

    @property
    def notes(self) -> list[str]:
        return [f"Left out: {count} × {tag}." for tag, count in sorted(self.left_out.items())]

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        super().start(tag, attributes)
        self._in_title = tag == "title" and not self._title
        if tag in LEFT_OUT - {"title"}:
            self.left_out[tag] += 1
        elif tag == "img" and not attributes.get("src", "").lower().startswith("data:"):
            self.left_out["image that the document does not carry itself"] += 1

    def end(self, tag: str) -> None:
        super().end(tag)
        self._in_title = False

    def data(self, text: str) -> None:
        if self._in_title:
            self._title.append(text)


def feed(parts: Iterable[str], target: Depth) -> None:
    """Read HTML of any size and depth as a stream of events; nothing is kept but what the target keeps."""
    # The stubs ask for bytes and comments too; lxml calls what is there, with text.
    parser = etree.HTMLParser(target=target, huge_tree=True, encoding="utf-8")  # type: ignore[arg-type]
    for part in parts:
        for at in range(0, len(part), CHUNK):
            parser.feed(part[at : at + CHUNK].encode("utf-8", "replace"))
    parser.close()


def survey(parts: Iterable[str], name: str, limit: int) -> Survey:
    seen = Survey(name, limit)
    feed(parts, seen)
    return seen
