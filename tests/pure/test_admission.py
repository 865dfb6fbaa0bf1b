"""What may come in: every limit at one less, at itself and at one more, and the field that breaks it."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs import admission
from jobs.admission import LONGEST_DELAY
from jobs.handlers import Options, job
from jobs.outcomes import InvalidJob

KIND = "tests.kind"
LAST = datetime(9000, 1, 1, tzinfo=UTC)
FIRST = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def _row(kind: str = KIND, arguments: Any = None, **options: Any) -> dict[str, Any]:
    return admission.rows([(kind, {} if arguments is None else arguments, Options(**options))])[0]


WITHIN: list[tuple[str, Any]] = [
    ("queue", "q" * 99),
    ("queue", "q" * 100),
    ("queue", "a.b_c:d-9"),
    ("label", "l" * 200),
    ("label", "\N{GRINNING FACE}" * 200),
    ("label", ""),
    ("priority", -100),
    ("priority", 100),
    ("priority", 0),
    ("max_attempts", 1),
    ("max_attempts", 10_000),
    ("unique_key", "k" * 200),
    ("unique_key", "\N{GRINNING FACE}" * 200),
    ("concurrency_key", "k" * 200),
    ("enqueued_by", "e" * 150),
    ("traceparent", f"00-{'a' * 32}-{'b' * 16}-01"),
    ("unique_scope", "ever"),
    ("delay", 0),
    ("delay", 1e-6),
    ("delay", LONGEST_DELAY),
    ("deadline", LONGEST_DELAY),
    ("due_at", FIRST),
    ("due_at", LAST),
    ("deadline_at", LAST),
    ("parent_id", uuid.uuid4()),
]
BEYOND: list[tuple[str, Any]] = [
    ("queue", "q" * 101),
    ("queue", "with space"),
    ("queue", ".dot first"),
    ("queue", "neue\N{LATIN SMALL LETTER U WITH DIAERESIS}"),
    ("queue", "line\n"),
    ("queue", 7),
    ("label", "l" * 201),
    ("label", "\0"),
    ("label", "\ud800"),
    ("label", 7),
    ("priority", -101),
    ("priority", 101),
    ("priority", 1.5),
    ("priority", True),
    ("priority", "1"),
    ("max_attempts", 0),
    ("max_attempts", 10_001),
    ("max_attempts", True),
    ("unique_key", ""),
    ("concurrency_key", ""),
    ("unique_key", "k" * 201),
    ("unique_key", "a\0"),
    ("unique_key", "\udfff"),
    ("unique_key", b"k"),
    ("concurrency_key", "k" * 201),
    ("enqueued_by", "e" * 151),
    ("traceparent", f"00-{'0' * 32}-{'b' * 16}-01"),
    ("traceparent", 7),
    ("unique_scope", "always"),
    ("unique_scope", None),
    ("delay", -1e-6),
    ("delay", LONGEST_DELAY + 1),
    ("delay", float("nan")),
    ("delay", float("inf")),
    ("delay", True),
    ("delay", "1"),
    ("deadline", -1),
    ("due_at", FIRST - TICK),
    ("due_at", LAST + TICK),
    ("due_at", datetime(2026, 1, 1)),
    ("due_at", datetime.max.replace(tzinfo=UTC)),
    ("due_at", "2026-01-01T00:00:00Z"),
    ("deadline_at", datetime(2026, 1, 1)),
    ("parent_id", "no id"),
    ("parent_id", 7),
]


@pytest.mark.parametrize(("field", "value"), WITHIN, ids=lambda v: v if isinstance(v, str) else "")
def test_within_the_limit_is_taken(field, value):
    row = _row(**{field: value})
    kept = row[field]
    assert kept == (value.hex if isinstance(value, uuid.UUID) else value)


@pytest.mark.parametrize(("field", "value"), BEYOND, ids=lambda v: v if isinstance(v, str) else "")
def test_beyond_the_limit_is_refused_and_the_field_named(field, value):
    with pytest.raises(InvalidJob) as refused:
        _row(**{field: value})
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")


@pytest.mark.parametrize("kind", ["k" * 120, "a", "A_b.c:d-e", "9"])
def test_kind_within_the_limit_is_taken(kind):
    assert _row(kind)["kind"] == kind


@pytest.mark.parametrize(
    "kind", ["", "k" * 121, "a b", "-a", ".a", "a\n", "\N{GREEK SMALL LETTER ALPHA}", None, 7]
)
def test_kind_beyond_the_limit_is_refused(kind):
    with pytest.raises(InvalidJob, match="kind: "):
        _row(kind)


@pytest.mark.parametrize("limit", ["ARGUMENT_BYTES", "RESULT_BYTES"])
def test_arguments_and_results_are_bounded_in_bytes(settings, limit):
    room = settings.INTERLOCK[limit]
    frame = len('{"x":""}')

    def take(size: int) -> str:
        value = {"x": "y" * (size - frame)}
        return _row(arguments=value)["input"] if limit == "ARGUMENT_BYTES" else admission.result(value)[0]

    for size in (room - 1, room):
        assert len(take(size)) == size
    with pytest.raises(ValueError, match=f"longer than {room} bytes"):
        take(room + 1)


def test_arguments_are_bounded_in_depth(settings):
    value: Any = 0
    for _ in range(settings.INTERLOCK["DEPTH"] - 1):
        value = [value]
    assert _row(arguments={"x": value})
    with pytest.raises(InvalidJob, match="nested too deeply"):
        _row(arguments={"x": [value]})


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ([1], "arguments"),
        ("x", "arguments"),
        ({"x": float("nan")}, "arguments/x"),
        ({"x": [2**53]}, "arguments/x/0"),
        ({"x": {"y": "\0"}}, "arguments/x/y"),
        ({"x": object()}, "arguments/x"),
        ({1: 2}, "arguments"),
    ],
)
def test_arguments_that_are_no_json_are_refused_with_their_path(arguments, field):
    with pytest.raises(InvalidJob) as refused:
        _row(arguments=arguments)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "missing a required argument: 'source'"),
        ({"source": "a", "more": 1}, "got an unexpected keyword argument 'more'"),
        ({"ctx": 1, "source": "a"}, "got an unexpected keyword argument 'ctx'"),
    ],
)
def test_arguments_must_fit_the_handlers_signature(arguments, says):
    @job(
        "tests.signed",
        label="{source}!",
        queue="papers",
        priority=7,
        max_attempts=3,
        lease=90,
        aliases=["tests.old"],
    )
    def signed(ctx, source, to="html"): ...

    with pytest.raises(InvalidJob, match=r"arguments: tests\.signed: ") as refused:
        _row("tests.signed", arguments)
    assert says in refused.value.problem


def test_kind_says_what_the_enqueue_does_not():
    @job(
        "tests.signed",
        label="{source}!",
        queue="papers",
        priority=7,
        max_attempts=3,
        lease=90,
        aliases=["tests.old"],
    )
    def signed(ctx, source, to="html"): ...

    row = _row("tests.old", {"source": "a"})
    told = {k: row[k] for k in ("kind", "queue", "priority", "max_attempts", "lease_seconds", "label")}
    assert told == {
        "kind": "tests.signed",
        "queue": "papers",
        "priority": 7,
        "max_attempts": 3,
        "lease_seconds": 90,
        "label": "a!",
    }
    row = _row("tests.old", {"source": "a"}, queue="q", priority=0, max_attempts=1, label="own")
    assert (row["queue"], row["priority"], row["max_attempts"], row["label"]) == ("q", 0, 1, "own")


@pytest.mark.parametrize("label", ["{nobody}", "{source.nothing}", "{source[9]}", "{", "{source:d}", "{0}"])
def test_label_that_cannot_be_made_is_no_reason_to_refuse(label):
    @job("tests.labelled", label=label)
    def labelled(source): ...

    assert _row("tests.labelled", {"source": "a"})["label"] == ""


OPTIONS = [
    None,
    Options(),
    Options(priority=3, label="own"),
    Options(delay=5, unique_key="k"),
    Options(priority=101),
]
KEYS = [None, None, "a", "b", "", "\0"]
ARGUMENTS: list[Any] = [
    {"source": "a"},
    {"source": 1.5, "to": "é"},
    {"source": {"b": [2**53]}},
    {},
    [],
    {"source": "b"},
]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["tests.labelled", KIND, "a b"]),
            st.sampled_from(ARGUMENTS),
            st.sampled_from(OPTIONS),
            st.sampled_from(KEYS),
        ),
        max_size=8,
    )
)
@settings(max_examples=100, deadline=None)
def test_many_are_judged_as_each_is_alone(calls):
    @job("tests.labelled", label="{source}")
    def labelled(source, to=""): ...

    def judged(many: list[Any]) -> Any:
        try:
            rows = admission.rows([call[:3] for call in many], [call[3] for call in many])
        except InvalidJob as refused:
            return str(refused)
        return [{**row, "id": ""} for row in rows]

    alone = [judged([call]) for call in calls]
    refused = [answer for answer in alone if isinstance(answer, str)]
    assert judged(calls) == (refused[0] if refused else [row for (row,) in alone])


def test_label_is_one_line_of_at_most_200_characters():
    @job("tests.labelled", label="{source}")
    def labelled(source): ...

    assert _row("tests.labelled", {"source": " a\n\tb  c "})["label"] == "a b c"
    assert len(_row("tests.labelled", {"source": "x" * 999})["label"]) == 200


def test_ids_are_new_and_sort_by_age():
    ids = [_row()["id"] for _ in range(500)]
    assert len(set(ids)) == 500
    assert ids == sorted(ids)
    assert {uuid.UUID(i).version for i in ids} == {7}


@pytest.mark.parametrize(
    "options",
    [
        {"lease": 0},
        {"lease": 1.5},
        {"max_attempts": 0},
        {"priority": 101},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"queue": "no good"},
        {"aliases": ["no good"]},
    ],
    ids=str,
)
def test_kind_that_could_not_work_is_refused_where_it_is_declared(options):
    with pytest.raises(ValueError, match=r"kind "):
        job("tests.wrong", **options)(lambda: None)
