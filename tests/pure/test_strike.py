"""A secret of the input does not come back in a result."""

import time

from jobs.redact import MASK, strike


def test_secrets_are_struck_from_keys_texts_and_numbers_at_any_depth():
    value = {"to DE12": ["paid DE12 and DE12", {"n": 4711}], "ok": True, "nothing": None}
    assert strike(value, {"DE12", "4711"}) == {
        f"to {MASK}": [f"paid {MASK} and {MASK}", {"n": MASK}],
        "ok": True,
        "nothing": None,
    }


def test_a_secret_that_begins_with_another_is_struck_whole():
    assert strike("abcd-ef", ["abcd", "abcd-ef"]) == MASK


def test_without_secrets_a_value_stays_itself():
    value = {"a": [1]}
    assert strike(value, []) is value


def test_a_text_with_the_mark_that_parts_them_is_one_text():
    assert strike(["a\0DE12", "b"], ["DE12"]) == [f"a\N{REPLACEMENT CHARACTER}{MASK}", "b"]


def test_thousands_of_secrets_are_looked_for_in_thousands_of_texts_at_once():
    secrets = {f"{n:06d}x{n}" for n in range(6000)}
    value = {"items": [{"name": f"person {n}"} for n in range(6000)]}
    begun = time.process_time()
    assert strike(value, secrets) == value
    assert time.process_time() - begun < 2
