"""Tags and declared arguments: what a job is found by stands beside it exactly as long as it is true.

A revision beside the index command, on several connections, is raced in tests/races/test_index.py.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from jobs import handlers, searching
from jobs.handlers import Options, job
from jobs.models import Job, SearchAttribute
from jobs.models.protected import LedgerOnly
from jobs.operations import indexing
from jobs.outcomes import InvalidJob, KeyConflict
from jobs.status import JobStatus
from tests import build
from tests.build import T0

pytestmark = pytest.mark.django_db
V = Job.objects
KIND = "tests.searched"


class Undo(Exception):
    """The caller's own reason to roll back."""


def declare(*search: str, tags: tuple[str, ...] = (), **more: Any) -> None:
    """Register KIND anew, with these paths and tags."""
    handlers.forget(KIND)

    @job(KIND, search=search, tags=tags, **more)
    def work(**arguments: Any) -> None:
        """Do nothing."""


def enqueue(arguments: dict[str, Any] | None = None, **options: Any) -> uuid.UUID:
    found: uuid.UUID = V.enqueue(KIND, arguments or {}, options=Options(**options), now=T0).job_id
    return found


def found_by(job_id: uuid.UUID) -> list[tuple[str, str]]:
    """Return what a job is found by, tags under the name that they are kept under."""
    return sorted(SearchAttribute.objects.filter(job=job_id).values_list("name", "value"))


def revise(job_id: uuid.UUID, arguments: dict[str, Any]) -> None:
    version = Job.objects.get(pk=job_id).state_version
    V.revise(job_id, arguments, state_version=version, actor="a", reason="wrong", now=T0)


# -- enqueue ----------------------------------------------------------------------------------------


def test_job_is_found_by_its_tags_and_by_what_its_kind_declares():
    declare("invoice", "customer.id", "paid", "amount", tags=("money",))
    job_id = enqueue(
        {"invoice": "INV-17", "customer": {"id": 42}, "paid": False, "amount": 1.5, "other": "x"},
        tags=["vip", "eu", "vip", "money"],
    )
    assert found_by(job_id) == [
        *(("", "eu"), ("", "money"), ("", "vip")),
        *(("amount", "1.5"), ("customer.id", "42"), ("invoice", "INV-17"), ("paid", "false")),
    ]
    assert Job.objects.get(pk=job_id).tag_list == ["money", "vip", "eu"]


def test_only_scalars_of_a_bounded_length_are_searched_for():
    declare("a", "b", "c", "d", "e", "f.g", "h")
    job_id = enqueue(
        {"a": None, "b": ["x"], "c": {"x": 1}, "d": "x" * 201, "e": "", "f": "no object", "h": "x" * 200}
    )
    assert found_by(job_id) == [("h", "x" * 200)]


def test_tag_of_a_kind_that_nobody_here_knows_is_kept_and_its_arguments_are_not():
    job_id = enqueue({"invoice": "INV-17"}, tags=["vip"])
    assert found_by(job_id) == [("", "vip")]


def test_many_are_found_each_by_its_own():
    declare("n")
    calls = [(KIND, {"n": n}, Options(tags=[f"t{n % 3}"])) for n in range(120)]
    ids = [answer.job_id for answer in V.enqueue_many(calls, now=T0)]
    assert [found_by(i) for i in ids] == [[("", f"t{n % 3}"), ("n", str(n))] for n in range(120)]


def test_keys_existing_job_gets_nothing_from_who_comes_later():
    declare("n")
    first = enqueue({"n": 1}, unique_key="k", tags=["first"])
    again = V.enqueue(KIND, {"n": 1}, options=Options(unique_key="k", tags=["second"]), now=T0)
    assert (again.job_id, again.created) == (first, False)
    with pytest.raises(KeyConflict):
        enqueue({"n": 2}, unique_key="k", tags=["third"])
    assert found_by(first) == [("", "first"), ("n", "1")]
    assert Job.objects.get(pk=first).tags == "first"
    assert SearchAttribute.objects.count() == 2


def test_enqueue_that_is_rolled_back_leaves_nothing_to_find():
    declare("n")

    def order() -> None:
        with transaction.atomic():
            enqueue({"n": 1}, tags=["vip"])
            raise Undo

    with pytest.raises(Undo):
        order()
    assert not SearchAttribute.objects.exists()


def test_job_with_nothing_to_be_found_by_costs_no_statement():
    declare()
    enqueue()
    with CaptureQueriesContext(connection) as plain:
        enqueue({"n": 1})
    declare("n")
    with CaptureQueriesContext(connection) as without:
        enqueue({})
    with CaptureQueriesContext(connection) as found:
        enqueue({"n": 1})
    assert len(plain) == len(without) == len(found) - 1
    assert not any("searchattribute" in query["sql"] for query in plain.captured_queries)


def test_tags_make_no_other_input():
    one, other = enqueue({"n": 1}), enqueue({"n": 1}, tags=["vip"])
    assert len(set(Job.objects.filter(pk__in=[one, other]).values_list("input_digest", flat=True))) == 1


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ("vip", "list"),
        (None, "list"),
        ([1], "list"),
        ([""], "1 to 50"),
        (["x" * 51], "1 to 50"),
        (["a b"], "blanks"),
        (["a\N{NO-BREAK SPACE}b"], "blanks"),
        (["a,b"], "commas"),
        (["a\nb"], "printable"),
        (["a\0b"], "printable"),
        (["\ud800"], "printable"),
        (["\N{RIGHT-TO-LEFT OVERRIDE}x"], "printable"),
        ([f"t{n}" for n in range(21)], "at most 20"),
    ],
)
def test_bad_tag_is_refused_and_the_limit_is_named(tags, said):
    with pytest.raises(InvalidJob) as refused:
        enqueue(tags=tags)
    assert refused.value.field == "tags"
    assert said in refused.value.problem
    assert not Job.objects.exists()


def test_tags_at_their_limits_are_taken():
    tags = [f"{n:0>50}" for n in range(20)]
    assert Job.objects.get(pk=enqueue(tags=[*tags, *tags])).tag_list == tags


def test_kinds_tags_count_with_the_calls():
    declare(tags=("money",))
    with pytest.raises(InvalidJob, match="at most 20"):
        enqueue(tags=[f"t{n}" for n in range(20)])


# -- registration -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("search", "redact", "said"),
    [
        (["a..b"], [], "names of arguments"),
        ([""], [], "names of arguments"),
        (["a=b"], [], "names of arguments"),
        (["a b"], [], "names of arguments"),
        (["x" * 101], [], "names of arguments"),
        ([f"p{n}" for n in range(11)], [], "at most 10"),
        (["customer.card"], [], "secret"),
        (["token.id"], [], "secret"),
        (["iban"], [], "secret"),
        (["name"], ["name"], "redacted"),
        (["customer.name"], ["customer"], "redacted"),
        (["customer"], ["customer.name"], "redacted"),
        (["customer.name"], ["*.name"], "redacted"),
        (["customer.name"], ["customer.*"], "redacted"),
    ],
)
def test_path_that_cannot_be_searched_is_refused_where_it_is_declared(search, redact, said):
    with pytest.raises(ValueError, match=said):
        declare(*search, redact=redact)


def test_path_beside_a_redacted_one_may_be_declared():
    declare("customer.id", redact=["customer.name", "name"])


@pytest.mark.parametrize("given", [{"search": "invoice"}, {"tags": "vip"}, {"tags": ["a b"]}])
def test_what_is_no_list_of_tags_or_paths_is_refused_where_it_is_declared(given):
    with pytest.raises(ValueError, match=KIND):
        job(KIND, **given)(lambda: None)


# -- revise -----------------------------------------------------------------------------------------


def test_revision_replaces_what_stood_in_the_input_and_keeps_the_tags():
    declare("n", "m")
    job_id = enqueue({"n": 1, "m": 1}, tags=["vip"])
    revise(job_id, {"n": 2})
    assert found_by(job_id) == [("", "vip"), ("n", "2")]


def test_revision_of_an_unknown_kind_reads_the_paths_that_were_laid():
    declare("n", "m")
    job_id = enqueue({"n": 1}, tags=["vip"])
    handlers.forget(KIND)
    revise(job_id, {"n": 2, "m": 2})
    assert found_by(job_id) == [("", "vip"), ("n", "2")]


def test_revision_that_is_refused_changes_nothing():
    declare("n")
    job_id = enqueue({"n": 1})
    with pytest.raises(InvalidJob):
        revise(job_id, {"n": float("nan")})
    assert found_by(job_id) == [("n", "1")]


def test_rows_are_written_by_the_ledger_only():
    job_id = enqueue(tags=["vip"])
    row = SearchAttribute.objects.get(job=job_id)
    for act in (row.save, row.delete, SearchAttribute.objects.all().delete):
        with pytest.raises(LedgerOnly):
            act()


# -- the index command's work -------------------------------------------------------------------------


def index() -> indexing.Indexed:
    return sum(indexing.index(KIND), indexing.Indexed())


def test_jobs_that_were_there_before_are_found_once_they_are_indexed(monkeypatch):
    monkeypatch.setattr(indexing, "PAGE", 2)
    monkeypatch.setattr(indexing, "LOOKED", 3)
    ids = [enqueue({"n": n}, tags=["vip"]) for n in range(5)]
    others = [build.enqueue({"n": n}, now=T0) for n in range(2)]
    declare("n")
    assert index() == (5, 5, 0)
    assert [found_by(i) for i in ids] == [[("", "vip"), ("n", str(n))] for n in range(5)]
    assert [found_by(i) for i in others] == [[], []]
    assert index() == (5, 0, 0)


def test_path_that_is_declared_no_more_is_taken_away():
    declare("n", "m")
    job_id = enqueue({"n": 1, "m": 2}, tags=["vip"])
    declare("m")
    assert index() == (1, 0, 1)
    assert found_by(job_id) == [("", "vip"), ("m", "2")]


def test_jobs_under_a_former_name_are_indexed_too():
    job_id = enqueue({"n": 1})
    handlers.forget(KIND)

    @job("tests.renamed", aliases=[KIND], search=["n"])
    def work(**arguments: Any) -> None:
        """Do nothing."""

    assert sum(indexing.index("tests.renamed"), indexing.Indexed()) == (1, 1, 0)
    assert found_by(job_id) == [("n", "1")]
    handlers.forget("tests.renamed")


def test_index_says_nothing_that_a_person_could_act_on():
    job_id = enqueue({"n": 1})
    before = build.row(job_id)
    declare("n")
    index()
    assert build.row(job_id) == before


def test_kind_that_is_not_known_here_is_not_indexed():
    with pytest.raises(InvalidJob):
        list(indexing.index("tests.nobodys"))


def test_revision_between_read_and_lay_is_what_is_found(monkeypatch):
    job_id = enqueue({"n": 1})
    declare("n")
    revised: list[bool] = []

    def read_then_revised(jobs: Any) -> list[indexing.Read]:
        found = really(jobs)
        if not revised:
            revised.append(True)
            revise(job_id, {"n": 2})
        return found

    really = indexing._read
    monkeypatch.setattr(indexing, "_read", read_then_revised)
    index()
    assert found_by(job_id) == [("n", "2")]


# -- the way along the index --------------------------------------------------------------------------


@pytest.mark.parametrize("rare", [1, 2, 20_000])
def test_jobs_are_those_that_have_all_however_many_have_each(monkeypatch, rare):
    monkeypatch.setattr(searching, "RARE", rare)
    declare("n")
    for n in range(4):
        enqueue({"n": n}, tags=["vip"])
    wanted = [searching.tag("vip"), searching.argument("n=2")]
    assert searching.having(Job.objects.all(), wanted).count() == 1


def test_common_attribute_goes_after_a_rare_one(monkeypatch):
    monkeypatch.setattr(searching, "RARE", 3)
    declare("n")
    for n in range(4):
        enqueue({"n": n}, tags=["vip"])
    rare = searching.argument("n=2")
    assert searching.rarest_first([searching.tag("vip"), rare]) == [rare, ("", "vip")]


def test_job_that_ends_is_found_as_before():
    lease = build.job(JobStatus.SUCCEEDED, tags=["vip"])
    assert found_by(build.id_of(lease)) == [("", "vip")]
