"""Tables: what separates, what is kept, what is refused."""

import json

import pytest

from demo.convert import Code, ConversionRefused


@pytest.mark.parametrize(
    ("between", "name"), [(",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "bar")]
)
def test_separator_is_found(between, name, become):
    text = f"id{between}what{between}price\n" + f'1{between}"a{between}b, c; d"{between}3\n' * 5
    table = json.loads(become("t.csv", text, "json").text)
    assert table["delimiter"] == between
    assert table["columns"] == ["id", "what", "price"]
    assert table["rows"][4] == ["1", f"a{between}b, c; d", "3"]


def test_decimal_commas_do_not_hide_a_semicolon(become):
    assert json.loads(become("t.csv", "1,5;2,5;3,5\n" * 9, "json").text)["columns"] == ["1,5", "2,5", "3,5"]


def test_one_column_is_a_table_too(become):
    table = json.loads(become("t.csv", "name\nAnn\nBo\n", "json").text)
    assert (table["columns"], table["rows"]) == (["name"], [["Ann"], ["Bo"]])


def test_quoted_line_breaks_and_quotes_stay_in_their_cell(become):
    table = json.loads(become("t.csv", 'a,b\n1,"two\r\nlines, ""quoted"""\n', "json").text)
    assert table["rows"] == [["1", 'two\r\nlines, "quoted"']]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_end_ends_a_row(end, become):
    table = json.loads(become("t.csv", end.join(["a,b", "1,2", "3,4", ""]), "json").text)
    assert table["counts"] == {"rows": 2, "columns": 2, "ragged": 0}


def test_ragged_rows_are_kept_and_reported(become):
    text = "a,b,c\n1,2,3\n\n4,5\n6,7,8,9\n"
    table = json.loads(become("t.csv", text, "json").text)
    assert table["rows"] == [["1", "2", "3"], ["4", "5"], ["6", "7", "8", "9"]]
    assert table["ragged"] == [{"row": 2, "line": 4, "cells": 2}, {"row": 3, "line": 5, "cells": 4}]
    result = become("t.csv", text, "html")
    assert result.found.counts["ragged"] == 2
    assert result.found.notes == [
        "2 of 3 rows do not have the 3 cells of the first line: the first is row 2 (line 4), with 2."
    ]
    assert "<td>9</td>" in result.text
    assert result.found.notes[0] in become("t.csv", text, "text").text


def test_only_the_first_hundred_ragged_rows_are_named(become):
    table = json.loads(become("t.csv", "a,b\n" + "1\n" * 500, "json").text)
    assert table["counts"]["ragged"] == 500
    assert len(table["ragged"]) == 100


def test_text_lines_up_whatever_the_letters_are(become):
    text = 'name,amount\nÅsa,1\n寿司,22\n"two\nlines",333\n' + "x" * 70 + ",4\n"
    assert become("t.csv", text, "text").text.splitlines()[:8] == [
        "name" + " " * 58 + "amount",
        "-" * 60 + "  ------",
        "Åsa" + " " * 64 + "1",
        "寿司" + " " * 62 + "22",
        "two" + " " * 62 + "333",
        "lines",
        "x" * 60 + "       4",
        "x" * 10,
    ]


def test_control_characters_cannot_reach_a_terminal_but_stay_in_json(become):
    text = "a,b\n\x1b[2J,\x9b31m\n"
    assert "␛[2J" in become("t.csv", text, "text").text
    for to in ("text", "html"):
        assert not set("\x1b\x9b") & set(become("t.csv", text, to).text)
    assert json.loads(become("t.csv", text, "json").text)["rows"] == [["\x1b[2J", "\x9b31m"]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_permitted_encodings_read_the_same(encoding, become):
    table = json.loads(become("t.csv", "naïve,Ā愀\nœuvre,2\n".encode(encoding), "json").text)
    assert (table["columns"], table["rows"]) == (["naïve", "Ā愀"], [["œuvre", "2"]])


@pytest.mark.parametrize(
    ("text", "limits", "reason"),
    [
        ("a,b\n" + "x" * 2000 + ",1\n", {"line_chars": 1000}, "a line longer than 1,000 characters"),
        ('a,b\n1,"open\n' + "more,cells\n" * 200, {"line_chars": 1000}, "is a quote left open?"),
        ("a,b\n" + "," * 50 + "\n", {"columns": 20}, "51 cells in line 2: the limit is 20"),
    ],
)
def test_what_would_need_memory_without_bound_is_refused(text, limits, reason, become):
    with pytest.raises(ConversionRefused, match=r"t\.csv has") as refused:
        become("t.csv", text, "json", **limits)
    assert refused.value.code == Code.TOO_LARGE
    assert reason in refused.value.message


def test_cell_far_beyond_the_librarys_default_is_read(become):
    table = json.loads(become("t.csv", "a,b\n" + "x" * 1_000_000 + ",1\n", "json").text)
    assert len(table["rows"][0][0]) == 1_000_000
