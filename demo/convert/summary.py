"""What a finished conversion has to say about itself."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Found:
    """What the converter learned about the document."""

    title: str
    encoding: str
    counts: dict[str, int]  # rows, columns, ragged, … or words, headings, …
    notes: list[str] = field(default_factory=list)  # what a reader should know, one sentence each


@dataclass(frozen=True, slots=True)
class Summary:
    """One finished conversion; `dataclasses.asdict` of it is plain JSON."""

    source: str
    kind: str
    to: str
    title: str
    encoding: str
    counts: dict[str, int]
    notes: list[str]
    source_bytes: int
    target_bytes: int
    seconds: float
    peak_kib: int  # resident memory of the converter at its highest, 0 if not known
