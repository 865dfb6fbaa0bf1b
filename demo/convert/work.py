"""From an open source to an open target: who reads what, and who writes it."""

from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO

from demo.convert.decode import Progress, TextSource
from demo.convert.errors import Code, ConversionRefused
from demo.convert.request import Request
from demo.convert.summary import Found

if TYPE_CHECKING:
    from demo.convert.document import Reader


def convert(request: Request, source: BinaryIO, target: BinaryIO, progress: Progress) -> Found:
    """Read the source as the kind it is, write it as what was asked for, and say what was found."""
    text = TextSource(source, request.name)
    if request.kind == "csv":
        from demo.convert.csv_table import convert_table

        return convert_table(text, request, target, progress)
    return _convert_document(text, request, target)


def _convert_document(text: TextSource, request: Request, target: BinaryIO) -> Found:
    from demo.convert import document

    content = text.read()
    if not content.strip():
        raise ConversionRefused(Code.EMPTY, f"{request.name} is empty: it has nothing but white space.")
    read = document.read(content, request, _reader(request.kind))
    for piece in document.WRITERS[request.to](read, content):
        target.write(piece.encode("utf-8", "replace"))
    return Found(read.title, text.encoding, read.counts(), read.notes)


def _reader(kind: str) -> "Reader":
    """Load only the library that this document needs."""
    module = import_module(f"demo.convert.from_{kind}")
    reader: Reader = module.read
    return reader
