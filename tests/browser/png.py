"""Makes a picture small: a PNG of at most 256 colours, written without a library.

Pages of a console have few colours and much of each; what a palette takes away nobody sees.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def shrink(png: bytes) -> bytes:
    """Return the same picture with a palette; takes what a browser writes: 8 bits, RGB or RGBA."""
    width, height, channels, rows = _decode(png)
    pixels = [row[i : i + 3] for row in rows for i in range(0, width * channels, channels)]
    palette, index = _palette(Counter(pixels))
    body = b"".join(
        b"\0" + bytes(index[p] for p in pixels[y * width : (y + 1) * width]) for y in range(height)
    )
    return (
        SIGNATURE
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + _chunk(b"PLTE", b"".join(palette))
        + _chunk(b"IDAT", zlib.compress(body, 9))
        + _chunk(b"IEND", b"")
    )


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _palette(counts: Counter[bytes]) -> tuple[list[bytes], dict[bytes, int]]:
    """Return the 256 colours that matter and where each colour goes: the nearest of them.

    Colours alike in their upper bits are counted together, so that the edges of letters, of which there are
    thousands in as many shades, do not take the places of whole areas.
    """
    kept = [colour for colour, _ in counts.most_common(160)]
    shades: Counter[bytes] = Counter()
    for colour, n in counts.items():
        if colour not in kept[:160]:
            shades[bytes((part & 0xE0) | 0x10 for part in colour)] += n
    kept += [shade for shade, _ in shades.most_common(256 - len(kept))]
    near: dict[bytes, int] = {colour: n for n, colour in enumerate(kept)}
    for colour in counts:
        if colour not in near:
            near[colour] = min(range(len(kept)), key=lambda n: _apart(kept[n], colour))
    return kept, near


def _apart(one: bytes, other: bytes) -> int:
    return sum((a - b) * (a - b) for a, b in zip(one, other, strict=True))


def _decode(png: bytes) -> tuple[int, int, int, list[bytes]]:
    """Return width, height, channels and the rows of an 8-bit picture, its filters undone."""
    assert png.startswith(SIGNATURE)
    at, packed, header = len(SIGNATURE), b"", b""
    while at < len(png):
        (length,), name = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        content = png[at + 8 : at + 8 + length]
        header = content if name == b"IHDR" else header
        packed += content if name == b"IDAT" else b""
        at += 12 + length
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    channels = {2: 3, 6: 4}[kind]
    assert (depth, interlaced) == (8, 0)
    raw, stride = zlib.decompress(packed), width * channels
    rows, above = [], bytes(stride)
    for y in range(height):
        start = y * (stride + 1)
        above = _undo(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), above, channels)
        rows.append(above)
    return width, height, channels, rows


def _undo(how: int, row: bytearray, above: bytes, step: int) -> bytes:
    """Undo one row's filter (PNG specification, clause 9)."""
    if how == 1:
        for i in range(step, len(row)):
            row[i] = (row[i] + row[i - step]) & 255
    elif how == 2:
        row = bytearray((a + b) & 255 for a, b in zip(row, above, strict=True))
    elif how in (3, 4):
        for i in range(len(row)):
            left = row[i - step] if i >= step else 0
            corner = above[i - step] if i >= step else 0
            guess = (left + above[i]) // 2 if how == 3 else _paeth(left, above[i], corner)
            row[i] = (row[i] + guess) & 255
    return bytes(row)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    by_left, by_up, by_corner = abs(guess - left), abs(guess - up), abs(guess - corner)
    if by_left <= by_up and by_left <= by_corner:
        return left
    return up if by_up <= by_corner else corner
