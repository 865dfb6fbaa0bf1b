"""The reader of bodies: refuses what two readers could take differently, at any depth, in linear time."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.api import strictjson

pytestmark = pytest.mark.looks_alike

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_everything_that_is_strict_is_read_as_it_was_written(value):
    assert strictjson.read(json.dumps(value).encode(), depth=200) == value
    assert strictjson.read(json.dumps(value, ensure_ascii=False).encode(), depth=200) == value


@given(
    st.binary(max_size=200)
    | st.text('{}[]",:\\u0123456789truefalsnNaIity.eE+- ', max_size=200).map(str.encode)
)
def test_anything_else_is_refused_and_nothing_else_is_raised(raw):
    with contextlib.suppress(strictjson.NotStrict):
        strictjson.read(raw, depth=10)


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (b'{"a":{"b":[1,NaN]}}', "/a/b/1"),
        (b'{"a":[Infinity]}', "/a/0"),
        (b'{"a":-Infinity}', "/a"),
        (b'{"a":1e999}', "/a"),
        (b'{"a":-1e999}', "/a"),
        (b'{"a":' + b"9" * 5000 + b"}", "/a"),
        (b'{"a":{"b":1,"b":1}}', "/a"),
        (b'[{},{"":1,"":2}]', "/1"),
        (b'{"a":"\\u0000"}', "/a"),
        (b'{"\\u0000":1}', ""),
        (b'{"a":"\\ud800"}', "/a"),
        (b'{"a":"\\udfff\\ud800"}', "/a"),
        (b'{"a":{"\\ud83d":1}}', "/a"),
        (b'{"a~b/c":NaN}', "/a~0b~1c"),
        (b'"\xff"', ""),
        ('"\ud800"'.encode("utf-8", "surrogatepass"), ""),
        ('{"a":1}'.encode("utf-16"), ""),
        (b'\xef\xbb\xbf{"a":1}', ""),
        (b"", ""),
        (b"{'a':1}", ""),
        (b'{"a":1,}', ""),
        (b'{"a":1} {}', ""),
        (b"[1 /* one */]", ""),
        (b"01", ""),
        (b'"tab\there"', ""),
    ],
)
def test_culprit_is_named_by_its_pointer(raw, pointer):
    with pytest.raises(strictjson.NotStrict) as refusal:
        strictjson.read(raw, depth=32)
    assert refusal.value.pointer == pointer


def test_surrogate_pair_is_one_character():
    assert strictjson.read(b'"\\ud83d\\ude00"', depth=1) == "\N{GRINNING FACE}"


@pytest.mark.parametrize("depth", [33, 1_000, 10_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_deep_nesting_is_refused_before_anything_recurses(depth, opening, closing):
    raw = (opening * depth + "1" + closing * depth).encode()
    for document in (raw, raw[: len(opening) * depth]):
        with pytest.raises(strictjson.NotStrict, match="deeper than 32"):
            strictjson.read(document, depth=32)


def test_depth_up_to_the_limit_is_read():
    assert strictjson.read(b"[" * 32 + b"]" * 32, depth=32)


def test_brackets_inside_text_are_no_nesting():
    assert strictjson.read(json.dumps({"a": '[{"\\' * 100}).encode(), depth=1)


@pytest.mark.parametrize("raw", [b'"', b'"\\', b'"\\"' * 300_000, b'"' + b"\\" * 900_001, b'["' * 300_000])
def test_unclosed_text_costs_linear_time(raw):
    """A million bytes in quadratic time would take hours; the suite's time limit is the assertion."""
    with pytest.raises(strictjson.NotStrict):
        strictjson.read(raw, depth=32)
