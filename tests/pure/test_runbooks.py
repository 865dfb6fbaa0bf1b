"""Runbooks: steps with the case's own words in them, and links that lead nowhere but where the kind says."""

import pytest

from jobs import effect_kinds, runbooks
from jobs.effect_kinds import effect_kind

KEY = "9c41d0e7b2"
VALUES = {"key": KEY, "reference": "", "label": "INV-7 to acme", "amount": "42.00 EUR"}


def texts(runbook, values=VALUES):
    return ["".join(part.text for part in step) for step in runbooks.steps(runbook, values)]


def test_numbered_lines_are_steps_and_a_line_without_a_number_goes_on_with_the_one_before():
    book = """
    1. Does the console list {key}?
    2) Does the statement
       hold {amount}?

    - Neither: park {label}.
    """
    assert texts(book) == [
        f"Does the console list {KEY}?",
        "Does the statement hold 42.00 EUR?",
        "Neither: park INV-7 to acme.",
    ]


def test_lines_without_numbers_are_a_step_each_and_one_line_is_one():
    assert texts("look\nask") == ["look", "ask"]
    assert texts("See the wiki.") == ["See the wiki."]
    assert texts("") == texts("\n \n") == []
    assert texts("https://runbooks.example/x") == []
    assert texts("https://runbooks.example/x and then ask") == ["https://runbooks.example/x and then ask"]


def test_only_the_four_names_are_filled_in_and_a_value_is_never_a_format_again():
    evil = VALUES | {"label": "{key} {0.__class__} %s", "reference": "{amount}"}
    assert texts("{label} / {reference}", evil) == ["{key} {0.__class__} %s / {amount}"]
    assert texts("{secret} {label.__class__} {} {0} {{key}} {reference}") == [
        f"{{secret}} {{label.__class__}} {{}} {{0}} {{{KEY}}} {{reference}}"
    ]
    (step,) = runbooks.steps("ask for {key}", VALUES)
    assert step == [("ask for ", False), (KEY, True)]


def test_link_carries_its_values_encoded_and_is_none_where_one_of_them_is_missing():
    console = "https://pay.example/find?key={key}&what={label}"
    evil = VALUES | {"label": "a&b=/../?#\"><script>'\udc00"}
    assert runbooks.address(console, evil) == (
        f"https://pay.example/find?key={KEY}&what=a%26b%3D%2F..%2F%3F%23%22%3E%3Cscript%3E%27%3F"
    )
    assert runbooks.address("https://pay.example/{reference}", VALUES) == ""
    assert runbooks.address("https://pay.example/", VALUES) == "https://pay.example/"
    assert runbooks.address("", VALUES) == ""


@pytest.mark.parametrize(
    "console",
    [
        "http://pay.example/{key}",
        "javascript:alert('{key}')",
        " https://pay.example/{key}",
        "HTTPS://pay.example/{key}",
        "https:///{key}",
        "https://{key}.example/",
        "https://{key}",
        "https://pay.example@evil.example/{key}",
        "https://pay.example\\@evil.example/{key}",
        "https://pay.example:x/{key}",
        "https://[pay.example/{key}",
        "https://pay.example/{secret}",
        "https://pay.example/{key",
        "https://pay.example/{}",
        "https://pay.example/{key}\n",
        'https://pay.example/"{key}"',
        "https://pay.example/" + "x" * 500,
        "//pay.example/{key}",
    ],
)
def test_console_that_a_person_should_not_be_led_to_fails_at_import(console):
    with pytest.raises(ValueError, match=r"effect kind tests\.books: console"):
        effect_kind("tests.books", replay="queryable", console=console)(lambda request: None)
    assert effect_kinds.find("tests.books") is None


def test_runbook_that_nobody_would_read_fails_at_import():
    with pytest.raises(ValueError, match="at most 4000 characters"):
        effect_kind("tests.books", replay="queryable", runbook="x" * 4001)(lambda request: None)


def test_kind_with_a_console_and_steps_is_registered():
    console = "https://pay.example:8443/find/{key}?of={amount}"
    kind = effect_kind("tests.books", replay="queryable", console=console, runbook="1. {key}")(lambda _: None)
    assert (kind.console, kind.runbook) == (console, "1. {key}")
    effect_kinds.forget("tests.books")
