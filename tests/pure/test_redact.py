"""Secrets do not reach people: masking is a rule on data."""

from __future__ import annotations

import json

import pytest

from jobs.redact import MASK, clean, mask, secrets_in

S3CR3T = "S3CR3T-0815"
PAYLOAD = {
    "password": S3CR3T,
    "nested": [{"token": S3CR3T, "n": 1}, {"Api-Key": S3CR3T}, {"deep": {"AUTHORIZATION": S3CR3T}}],
    "user": "ann",
    "card": {"number": 4711_0815, "holder": "Ann"},
    "open": [1, None, True],
}


def test_key_that_names_a_secret_is_masked_at_any_depth():
    shown = mask(PAYLOAD)
    assert S3CR3T not in json.dumps(shown)
    assert shown["password"] == MASK
    assert shown["nested"][0] == {"token": MASK, "n": 1}
    assert shown["card"] == MASK
    assert (shown["user"], shown["open"]) == ("ann", [1, None, True])


def test_masking_leaves_the_handlers_value_alone():
    before = json.dumps(PAYLOAD)
    mask(PAYLOAD, ["user"])
    assert json.dumps(PAYLOAD) == before


@pytest.mark.parametrize(
    ("paths", "hidden"),
    [
        (["user"], {"user"}),
        (["open.0"], {"open.0"}),
        (["open.*"], {"open.0", "open.1", "open.2"}),
        (["nothing.like.this"], set()),
        (["user.name"], set()),
    ],
)
def test_kinds_own_paths_are_masked_too(paths, hidden):
    shown = mask(PAYLOAD, paths)
    found = {"user"} if shown["user"] == MASK else set()
    found |= {f"open.{n}" for n, part in enumerate(shown["open"]) if part == MASK}
    assert found == hidden


def test_what_is_masked_is_known_as_text_to_be_struck_elsewhere():
    assert secrets_in(PAYLOAD, ["user"]) == {S3CR3T, "47110815", "Ann"} - {"Ann"}
    assert secrets_in({"note": "abcdef"}, ["note"]) == {"abcdef"}


@pytest.mark.parametrize(
    "text",
    [
        f"KeyError: {S3CR3T}",
        f"call(password={S3CR3T!r}, user='ann')",
        f"{{'nested': [{{'token': '{S3CR3T}'}}]}}",
        f"https://ann:{S3CR3T}@example.test/",
    ],
)
def test_secret_of_the_input_is_struck_from_an_error(text):
    shown = clean(text, limit=8192, secrets=secrets_in(PAYLOAD))
    assert S3CR3T not in shown
    assert MASK in shown


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2",
        "Password: hunter2",
        '"api_key": "hunter2"',
        "Authorization: Bearer hunter2",
        "token='hunter2'",
        "cookie=hunter2; path=/",
    ],
)
def test_assignment_that_reads_like_a_secret_is_struck_even_if_nobody_knows_it(text):
    shown = clean(text, limit=8192)
    assert "hunter2" not in shown
    assert MASK in shown


def test_what_is_no_secret_stays():
    text = "The token bucket is empty; try the next card reader. passage=3"
    assert clean(text, limit=8192) == text


def test_control_characters_and_halves_of_characters_go():
    shown = clean("a\0b\x1b[31mc\ud800d\r\n\te", limit=8192)
    assert shown.encode()
    assert not set(shown) & set("\0\x1b\ud800\r")
    assert shown.endswith("\n\te")


@pytest.mark.parametrize("limit", [*range(12), 100, 8192])
def test_text_is_bounded_in_bytes_and_keeps_its_end(limit):
    shown = clean("\N{EURO SIGN}" * 5_000 + "the end", limit=limit)
    assert len(shown.encode()) <= max(limit, 4)
    if limit >= 20:
        assert shown.endswith("the end")
        assert shown.startswith("…")


def test_short_text_is_not_touched():
    assert clean("x" * 100, limit=100) == "x" * 100


def test_secret_at_the_edge_of_the_cut_does_not_survive_in_part():
    text = "x" * 200 + S3CR3T + "y" * 90
    shown = clean(text, limit=100, secrets=[S3CR3T])
    assert not any(part in shown for part in ("0815", "S3CR", "R3T-"))


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_exception_without_words_does_not_hide_the_failure():
    assert clean(Mute(), limit=100) == "<Mute that cannot be shown as text>"
