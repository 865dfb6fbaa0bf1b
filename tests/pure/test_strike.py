"""A secret of the input does not come back in a result."""

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
