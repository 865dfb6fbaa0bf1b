"""The kinds of document that can be read, and what they can become."""

from pathlib import Path

from demo.convert.errors import Code, ConversionRefused

KINDS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".rst": "rst",
    ".csv": "csv",
    ".html": "html",
    ".htm": "html",
    ".txt": "text",
}
TARGETS = {"html": ".html", "text": ".txt", "json": ".json"}  # target: the usual extension of its files


def kind_of(source: Path, name: str, to: str) -> str:
    """Name the kind of a source by its extension, if it can become `to`; else refuse."""
    if to not in TARGETS:
        raise ConversionRefused(
            Code.UNSUPPORTED, f"{name} cannot become {to!r}: choose one of {', '.join(TARGETS)}."
        )
    kind = KINDS.get(source.suffix.lower())
    if kind is None:
        raise ConversionRefused(
            Code.UNSUPPORTED,
            f"{name} has the extension {source.suffix!r}: only {', '.join(KINDS)} can be converted.",
        )
    return kind
