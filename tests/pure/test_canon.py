"""Canonical JSON: one text for one value, everybody's (RFC 8785), and a path for what is no JSON."""

from __future__ import annotations

import decimal
import enum
import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import canon
from jobs.canon import MAX_SAFE_INTEGER, NotCanonical, canonical

# IEEE 754 bits → what ECMAScript writes.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
    "4059000000000000": "100",
    "3ff8000000000000": "1.5",
    "3fb999999999999a": "0.1",
}


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_double_is_written_as_ecmascript_writes_it(bits, text):
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, False, None]}, '{"a":[true,false,null],"b":1}'),
        ('\N{EURO SIGN}$\x0f\nA\'B"\\"/', '"\N{EURO SIGN}$\\u000f\\nA\'B\\"\\\\\\"/"'),
        ("\b\t\f\r\x7f\u2028", '"\\b\\t\\f\\r\x7f\u2028"'),
        ({}, "{}"),
        ([], "[]"),
        ({"": ""}, '{"":""}'),
        ((1, 2), "[1,2]"),
        (MAX_SAFE_INTEGER, "9007199254740991"),
        (-MAX_SAFE_INTEGER, "-9007199254740991"),
    ],
)
def test_value_is_written_without_a_choice(value, text):
    assert canonical(value) == text


def test_names_are_sorted_by_utf16_code_units():
    """Beyond the BMP that is another order than by code points: an emoji goes before a Hebrew ligature."""
    names = ["\N{EURO SIGN}", "\r", "\ufb33", "1", "\N{GRINNING FACE}", "\x80", "\xf6"]
    written = list(json.loads(canonical(dict.fromkeys(names, 0))))
    assert written == ["\r", "1", "\x80", "\xf6", "\N{EURO SIGN}", "\N{GRINNING FACE}", "\ufb33"]


def test_digest_is_of_the_text():
    assert canon.digest("{}") == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


class Colour(enum.StrEnum):
    RED = "red"


REFUSED: list[tuple[Any, str, str]] = [
    (math.nan, "", "is not a JSON number"),
    ([math.inf], "/0", "is not a JSON number"),
    ({"a": -math.inf}, "/a", "is not a JSON number"),
    (2**53, "", "beyond"),
    (-(2**53), "", "beyond"),
    (float(2**53), "", "beyond"),
    (9.0e20, "", "beyond"),
    (10**400, "", "beyond"),
    ({"a": {"b": [0, "x\0y"]}}, "/a/b/1", "U+0000"),
    ({"a\0": 1}, "", "U+0000"),
    ("\ud800", "", "lone surrogate"),
    (["ok", "\udc00\N{EURO SIGN}"], "/1", "lone surrogate"),
    ({"\udfff": 1}, "", "lone surrogate"),
    ({1: "x"}, "", "key 1 is not text"),
    ({"a/b": {"~": {2: 0}}}, "/a~1b/~0", "is not text"),
    ({None: 1}, "", "key None is not text"),
    ({"a": b"bytes"}, "/a", "bytes is not JSON"),
    ({"a": {1, 2}}, "/a", "set is not JSON"),
    (decimal.Decimal(1), "", "Decimal is not JSON"),
    (Colour.RED, "", "Colour is not JSON"),
    (object(), "", "object is not JSON"),
]


@pytest.mark.parametrize(("value", "path", "problem"), REFUSED, ids=[f"{n}" for n in range(len(REFUSED))])
def test_what_is_no_json_is_refused_with_its_path(value, path, problem):
    with pytest.raises(NotCanonical) as refused:
        canonical(value)
    assert refused.value.path == path
    assert problem in refused.value.problem


def _nested(depth: int, *, inside: Any = 0) -> Any:
    value = inside
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def test_depth_is_counted_and_nothing_recurses_beyond_it():
    assert canonical(_nested(32))
    for depth in (33, 10_000, 200_000):
        with pytest.raises(NotCanonical, match="nested too deeply"):
            canonical(_nested(depth))
    assert canonical(1, depth=0) == "1"
    with pytest.raises(NotCanonical):
        canonical([], depth=0)


def test_value_that_holds_itself_is_too_deep():
    loop: list[Any] = []
    loop.append(loop)
    knot: dict[str, Any] = {}
    knot["a"] = [knot]
    for value in (loop, knot):
        with pytest.raises(NotCanonical, match="nested too deeply"):
            canonical(value)


@pytest.mark.parametrize("letter", ["x", "\N{EURO SIGN}", "\N{GRINNING FACE}"])
def test_length_is_counted_in_bytes(letter):
    limit = 256 * 1024
    width = len(letter.encode())
    room = (limit - 2) // width
    filler = "x" * (limit - 2 - room * width)
    assert len(canonical(letter * room + filler).encode()) == limit
    assert canonical(letter * room + filler[:-1] if filler else letter * (room - 1))
    with pytest.raises(NotCanonical, match="longer than 262144 bytes"):
        canonical(letter * room + filler + "x")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not 2**53 <= abs(x) < 1e21)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda parts: (
        st.lists(parts, max_size=5)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), parts, max_size=5
        )
    ),
    max_leaves=25,
)


@given(JSON)
def test_reading_and_writing_again_gives_the_same_text(value):
    text = canonical(value)
    assert canonical(json.loads(text)) == text


@given(JSON)
def test_value_comes_back_equal(value):
    assert json.loads(canonical(value)) == value


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.integers(0, 9)
    )
)
def test_order_of_names_makes_no_difference(value):
    backwards = dict(reversed(value.items()))
    assert canonical(backwards) == canonical(value)


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not 2**53 <= abs(x) < 1e21))
def test_double_is_written_in_the_shortest_way_that_reads_back(value):
    text = canonical(value)
    assert float(text) == value
    assert len(text.lstrip("-")) <= 26
    assert "E" not in text
    assert not text.endswith(".0")
