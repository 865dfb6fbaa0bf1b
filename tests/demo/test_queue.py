"""Documents through the queue: enqueued, converted by a worker, opened from the console."""

from __future__ import annotations

import io
import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.test import Client

from demo import people, store
from demo.kinds import convert
from jobs.handlers import Options
from jobs.models import Attempt, Job
from jobs.status import JobStatus
from jobs.worker.loop import Worker

pytestmark = pytest.mark.django_db
DOCUMENT = "# Offer\n\nTwo *chairs*, <script>alert(1)</script> and a table.\n"


@pytest.fixture(autouse=True)
def _own_storage(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = str(tmp_path / "media")


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "offer.md"
    path.write_text(DOCUMENT)
    return path


def enqueue(path: Path, to: str = "html") -> uuid.UUID:
    job_id: uuid.UUID = convert.enqueue(source=store.keep_source(path), to=to, name=path.name).job_id
    return job_id


def work() -> None:
    """Let one worker do what is ready."""
    worker = Worker(queues=["documents"], kinds=["documents.convert"], concurrency=2)
    while worker.step():
        pass


def converted(job_id: uuid.UUID) -> Attempt:
    job = Job.objects.get(pk=job_id)
    assert job.status == JobStatus.SUCCEEDED, (job.error_code, job.error_message)
    return Attempt.objects.get(pk=job.result_commit_id)


def test_a_document_is_converted_into_a_file_of_its_attempt(document: Path) -> None:
    job_id = enqueue(document)
    work()
    attempt = converted(job_id)
    assert attempt.value["file"] == f"attempts/{attempt.pk.hex}/offer.html"
    page = default_storage.open(attempt.value["file"]).read().decode()
    assert "<em>chairs</em>" in page
    assert "<script" not in page
    assert attempt.value["title"] == "Offer"


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("scan.txt", b"\x89PNG\r\n\x1a\n\x00\x00", "DOCUMENT_VALIDATION_BINARY"),
        ("latin.csv", b"name\nJos\xe9\n", "DOCUMENT_VALIDATION_ENCODING"),
        ("empty.md", b"", "DOCUMENT_VALIDATION_EMPTY"),
        ("sheet.xlsx", b"PK", "DOCUMENT_VALIDATION_UNSUPPORTED"),
    ],
)
def test_a_bad_document_fails_once_with_a_plain_sentence(
    tmp_path: Path, name: str, content: bytes, code: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    job_id = enqueue(path)
    work()
    job = Job.objects.get(pk=job_id)
    assert (job.status, job.error_code, job.attempt_count) == (JobStatus.FAILED, code, 1)
    assert job.error_message.startswith(name)
    assert "Traceback" not in job.error_message
    assert not default_storage.exists("attempts")


def test_a_source_that_is_gone_is_said_to_be_missing(document: Path) -> None:
    source = store.keep_source(document)
    job_id = convert.enqueue(source=source, name=document.name).job_id
    default_storage.delete(source)
    work()
    assert Job.objects.get(pk=job_id).error_code == "DOCUMENT_VALIDATION_MISSING"


def test_an_unknown_target_is_refused_and_not_retried(document: Path) -> None:
    job_id = enqueue(document, to="pdf")
    work()
    job = Job.objects.get(pk=job_id)
    assert (job.status, job.error_code) == (JobStatus.FAILED, "DOCUMENT_VALIDATION_UNSUPPORTED")


def test_a_late_attempt_s_file_never_becomes_the_result(document: Path, viewer: Client) -> None:
    """The superseded attempt has put its file into storage; the page goes on showing the other's."""
    job_id = enqueue(document)
    late = Job.objects.claim_job(job_id, worker_id="late:1:w")
    assert late is not None
    name = f"attempts/{late.attempt_id}/offer.html"
    default_storage.save(name, io.BytesIO(b"<p>from the late attempt</p>"))
    epoch = Job.objects.runtime.current_epoch()
    Job.objects.raise_epoch(expected=epoch, actor="test", reason="the worker is silent")
    work()
    assert not Job.objects.commit(late, {"file": name}).landed
    attempt = converted(job_id)
    assert attempt.value["file"] != name
    shown = b"".join(viewer.get(f"/conversions/{job_id}/file"))
    assert b"chairs" in shown
    assert b"late attempt" not in shown


def test_the_same_bytes_are_kept_once_and_names_are_made_safe(tmp_path: Path) -> None:
    path = tmp_path / "päper ../x.md"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(DOCUMENT)
    first, second = store.keep_source(path), store.keep_source(path)
    assert first == second
    assert Path(first).name == "x.md"
    for name in ("../../etc/pass wd", "…", ".hidden", "a\\b\0c.md", "x" * 500 + ".md"):
        safe = store.safe_name(name)
        assert safe == Path(safe).name
        assert len(safe) <= 100
        assert not safe.startswith(".")
    assert store.safe_name("Ümlaut päper.md") == "mlaut-p-per.md"


# -- the page


@pytest.fixture
def viewer(django_user_model: Any) -> Client:
    user = django_user_model.objects.create_user("viewer-1", is_staff=True)
    user.groups.set([Group.objects.get(name="viewer")])
    client = Client()
    client.force_login(user)
    return client


def test_the_page_lists_conversions_and_opens_results_that_can_do_nothing(
    document: Path, viewer: Client
) -> None:
    job_id = enqueue(document)
    Job.objects.enqueue("other.kind", {}, options=Options(label="not a document"))
    work()
    page = viewer.get("/conversions/").content.decode()
    assert "offer.md to html" in page
    assert "not a document" not in page
    answer = viewer.get(f"/conversions/{job_id}/file")
    assert answer.status_code == 200
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_result_is_not_opened_without_permission_or_before_it_is_committed(
    document: Path, viewer: Client, django_user_model: Any
) -> None:
    job_id = enqueue(document)
    assert viewer.get(f"/conversions/{job_id}/file").status_code == 404
    work()
    other = Client()
    other.force_login(django_user_model.objects.create_user("nobody-1", is_staff=True))
    assert other.get(f"/conversions/{job_id}/file").status_code == 403
    assert Client().get(f"/conversions/{job_id}/file").status_code == 302


# -- the commands


def test_the_command_enqueues_what_it_can_and_names_what_it_cannot(document: Path, tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError, match="1 of 2 files"):
        call_command("convert", str(document), str(tmp_path / "gone.md"), "--no-wait", stdout=out, stderr=err)
    job_id = uuid.UUID(out.getvalue().split()[0])
    assert Job.objects.get(pk=job_id).label == "offer.md to html"
    assert "gone.md: No such file or directory" in err.getvalue()


def test_the_command_copies_results_and_reports_failures(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = tmp_path / "bad.md"
    bad.write_bytes(b"\xff\xfe\x00")
    real = convert.enqueue

    def at_once(**arguments: Any) -> Any:
        answer = real(**arguments)
        work()
        return answer

    monkeypatch.setattr(type(convert), "enqueue", lambda _self, **arguments: at_once(**arguments))
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError, match="1 of 2 files"):
        call_command(
            "convert",
            str(document),
            str(bad),
            "--to",
            "text",
            "--out",
            str(tmp_path / "out"),
            stdout=out,
            stderr=err,
        )
    assert (tmp_path / "out" / "offer.txt").read_text().startswith("Offer")
    assert "bad.md: failed" in err.getvalue()


def test_a_file_whose_name_is_no_text_is_converted_like_any_other(tmp_path: Path) -> None:
    path = Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.md"))
    path.write_text(DOCUMENT)
    out = io.StringIO()
    call_command("convert", str(path), "--no-wait", stdout=out)
    work()
    assert out.getvalue().encode().endswith("/caf\N{REPLACEMENT CHARACTER}.md\n".encode())
    assert converted(Job.objects.get().pk).status == "committed"


def test_a_folder_that_cannot_be_made_is_named_before_anything_is_enqueued(document: Path) -> None:
    with pytest.raises(CommandError, match=r"^--out .*/offer\.md/results: Not a directory$"):
        call_command("convert", str(document), "--out", str(document / "results"))
    assert not Job.objects.exists()


@pytest.mark.parametrize("timeout", ["nan", "-1", "soon"])
def test_a_time_that_never_comes_is_refused(document: Path, timeout: str) -> None:
    with pytest.raises(CommandError, match="seconds"):
        call_command("convert", str(document), f"--timeout={timeout}")
    assert not Job.objects.exists()


def test_seeding_twice_enqueues_once_and_makes_a_login_per_role(django_user_model: Any) -> None:
    first, second = io.StringIO(), io.StringIO()
    call_command("demo_seed", stdout=first)
    jobs = Job.objects.count()
    call_command("demo_seed", stdout=second)
    assert Job.objects.count() == jobs > 0
    for role in people.ROLES:
        line = next(line for line in second.getvalue().splitlines() if line.strip().startswith(role))
        assert django_user_model.objects.get(username=role).check_password(line.split()[1])
        assert not django_user_model.objects.get(username=role).is_superuser
    assert Permission.objects.filter(group__name="viewer", codename="view_job").exists()
