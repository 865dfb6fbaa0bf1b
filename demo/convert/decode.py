"""Text out of bytes: UTF-8, or UTF-16 with a byte order mark, and nothing else.

Guessing an encoding turns names into rubbish silently; so the rest is refused,
with the place of the first byte that does not fit.
"""

import codecs
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from demo.convert.errors import Code, ConversionRefused

CHUNK = 256 * 1024
# UTF-32 before UTF-16: its little-endian mark begins with the other's.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SIGNATURES = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\xd0\xcf\x11\xe0", "an old office document"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "an SQLite database"),
)
Progress = Callable[[int, int], None]


class TextSource:
    """A file opened as text, as often as wanted; every byte of it is checked on the way."""

    def __init__(self, source: BinaryIO, name: str) -> None:
        self.name = name
        self._source = source
        self.size = source.seek(0, io.SEEK_END)
        source.seek(0)
        self.encoding, self._skip = detect(source.read(16), name)

    def read(self) -> str:
        """Return all of it, lines ended by a line feed."""
        with self.opened() as text:
            return text.read()

    @contextmanager
    def opened(
        self, progress: Progress | None = None, newline: str | None = None
    ) -> Iterator[io.TextIOWrapper]:
        """Open it from the start; a byte that does not belong ends the block with a refusal."""
        self._source.seek(self._skip)
        checked = io.BufferedReader(_Checked(self, self._source, progress), CHUNK)
        try:
            yield io.TextIOWrapper(checked, encoding=self.encoding, newline=newline)
        except UnicodeDecodeError as error:
            raise self._bad_byte() from error

    def refuse_nul(self, offset: int) -> ConversionRefused:
        return ConversionRefused(
            Code.BINARY,
            f"{self.name} has a NUL byte at offset {offset}: "
            "it is binary, or UTF-16 without a byte order mark.",
        )

    def _bad_byte(self) -> ConversionRefused:
        """Read it again, up to the byte that does not fit, and say where it is."""
        decoder = codecs.getincrementaldecoder(self.encoding)()
        self._source.seek(self._skip)
        offset, line, chunk = self._skip, 1, b"-"
        while chunk:
            chunk = self._source.read(CHUNK)
            pending = decoder.getstate()[0]
            try:
                line += decoder.decode(chunk, final=not chunk).count("\n")
            except UnicodeDecodeError as error:
                line += error.object[: error.start].decode(self.encoding).count("\n")
                at = offset - len(pending) + error.start
                return ConversionRefused(
                    Code.ENCODING,
                    f"{self.name} is not {said(self.encoding)}: byte 0x{error.object[error.start]:02X} "
                    f"at offset {at} (line {line}) does not fit; "
                    "save it as UTF-8, or as UTF-16 with a byte order mark.",
                )
            offset += len(chunk)
        return ConversionRefused(Code.ENCODING, f"{self.name} changed while it was read.")


class _Checked(io.RawIOBase):
    """The bytes of a source, refused at a NUL, counted for the progress."""

    def __init__(self, text: TextSource, source: BinaryIO, progress: Progress | None) -> None:
        self._text, self._source, self._progress = text, source, progress
        self._zero = b"\0" if text.encoding == "utf-8" else b"\0\0"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # it is always a memoryview
        start = self._source.tell()
        data = self._source.read(len(buffer))
        at = data.find(self._zero)
        # In UTF-16 the halves of two letters may be zero, too; a NUL begins at an even offset.
        while at >= 0 and (start + at) % len(self._zero):
            at = data.find(self._zero, at + 1)
        if at >= 0:
            raise self._text.refuse_nul(start + at)
        buffer[: len(data)] = data
        if self._progress:
            self._progress(start + len(data), self._text.size)
        return len(data)


def detect(head: bytes, name: str) -> tuple[str, int]:
    """Return the encoding that the first bytes announce and the length of the mark."""
    for signature, what in SIGNATURES:
        if head.startswith(signature):
            raise ConversionRefused(Code.BINARY, f"{name} is {what}, whatever its name says.")
    for mark, encoding in MARKS:
        if head.startswith(mark):
            if encoding == "utf-32":
                raise ConversionRefused(
                    Code.ENCODING,
                    f"{name} is UTF-32 (by the mark at offset 0): save it as UTF-8, "
                    "or as UTF-16 with a byte order mark.",
                )
            return encoding, len(mark)
    return "utf-8", 0


def said(encoding: str) -> str:
    return encoding.upper().removesuffix("-LE").removesuffix("-BE")
