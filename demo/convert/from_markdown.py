"""Markdown (CommonMark, with tables and strikethrough) as HTML."""

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore

from demo.convert import verdict
from demo.convert.errors import ConversionRefused
from demo.convert.request import Request

# Beyond this many brackets inside one another the rest is taken as text; the
# work grows with its square.
INLINE_NESTING = 100


def read(content: str, request: Request) -> tuple[list[str], list[str]]:
    """Render it, HTML within it included; the caller sanitises."""
    depth = request.limits.depth

    def refuse_deep(state: StateBlock, _start: int, _end: int, _silent: bool) -> bool:
        if state.level >= depth:
            raise ConversionRefused(*verdict.too_deep(request.name, depth))
        return False

    # The library leaves out, silently, what is nested beyond maxNesting: never let it get there.
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": depth + 1}).enable(
        ["table", "strikethrough"]
    )
    parser.block.ruler.before("table", "refuse_deep", refuse_deep)
    parser.core.ruler.before("inline", "inline_nesting", _inline_nesting)
    parser.core.ruler.push("align", _align)
    return [parser.render(content)], []


def _inline_nesting(state: StateCore) -> None:
    state.md.options["maxNesting"] = INLINE_NESTING


def _align(state: StateCore) -> None:
    """Say by an attribute what the library says by a style, which our page forbids."""
    for token in state.tokens:
        style = token.attrs.pop("style", None) if token.type in ("th_open", "td_open") else None
        if isinstance(style, str):
            token.attrs["align"] = style.removeprefix("text-align:")
