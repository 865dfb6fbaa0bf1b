"""`traceparent` as the W3C has it: what is valid, and what is as good as absent."""

import pytest

from jobs import traceparent

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        (GOOD, GOOD),
        (f" {GOOD}\t", GOOD),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        # Of a later version what this one knows is read.
        (f"01-{TRACE}-{SPAN}-ff", GOOD),
        (f"cc-{TRACE}-{SPAN}-02-what-the-future-will-be", f"00-{TRACE}-{SPAN}-00"),
        (f"cc-{TRACE}-{SPAN}-01.what", ""),
        (f"00-{TRACE}-{SPAN}-01-more", ""),
        (f"ff-{TRACE}-{SPAN}-01", ""),
        (f"00-{'0' * 32}-{SPAN}-01", ""),
        (f"00-{TRACE}-{'0' * 16}-01", ""),
        (GOOD.upper(), ""),
        (f"00-{TRACE[1:]}-{SPAN}-01", ""),
        (f"00-{TRACE}-{SPAN}-1", ""),
        (f"00-{TRACE}-{SPAN}-0１", ""),
        (f"{GOOD},{GOOD}", ""),
        (f"{GOOD}\n", ""),
        (f"{GOOD}\0", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_valid_header_is_kept_and_any_other_is_ignored(header, kept):
    assert traceparent.parse(header) == kept
    assert len(kept) in (0, traceparent.CHARACTERS)
