"""What one conversion may cost."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one conversion; a document that needs more is refused, never cut short."""

    csv_bytes: int = 120 * MIB
    document_bytes: int = 20 * MIB
    output_bytes: int = 512 * MIB
    depth: int = 500  # elements, quotes, lists or sections inside one another
    seconds: float = 30.0
    # Address space, not resident memory: the kernel refuses the allocation
    # instead of paging, so the machine never feels the attempt.
    memory_bytes: int = 512 * MIB
    # A CSV line or cell. One unclosed quote would otherwise make a cell of the whole file.
    line_chars: int = 16 * MIB
    columns: int = 16_384

    def source_bytes(self, kind: str) -> int:
        return self.csv_bytes if kind == "csv" else self.document_bytes


def size(count: int) -> str:
    """Say a number of bytes as a person would."""
    for unit, factor in (("GiB", 1024 * MIB), ("MiB", MIB), ("KiB", 1024)):
        if count >= factor:
            return f"{count / factor:.1f}".removesuffix(".0") + f" {unit}"
    return f"{count} bytes"


def seconds(count: float) -> str:
    """Say a duration as a person would."""
    return f"{count:g} s"
