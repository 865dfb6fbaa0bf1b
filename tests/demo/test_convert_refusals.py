"""Every way to say no: its code, its sentence, and nothing left behind."""

import errno
import json
import os
import signal
import sys

import pytest

from demo.convert import Code, ConversionRefused, ConverterUnavailable, Limits, Trouble, convert_file, verdict
from demo.convert import output as drafts
from demo.convert import process as processes
from demo.convert.request import Request

# What the content says about itself: file, content, code, what the sentence says.
CONTENTS = [
    ("a.rst", " \n\t\n", Code.EMPTY, "a.rst is empty"),
    ("a.txt", b"\xef\xbb\xbf", Code.EMPTY, "a.txt is empty"),
    ("a.csv", "\n\n\n", Code.EMPTY, "a.csv is empty"),
    ("a.csv", b"a,b\n1,\0\n", Code.BINARY, "a.csv has a NUL byte at offset 6"),
    ("a.md", "x\0".encode("utf-16"), Code.BINARY, "a.md has a NUL byte at offset 4"),
    ("a.md", "hello".encode("utf-16-le"), Code.BINARY, "or UTF-16 without a byte order mark"),
    ("a.html", b"%PDF-1.7\n", Code.BINARY, "a.html is a PDF document"),
    ("a.rst", b"PK\x03\x04rest", Code.BINARY, "a.rst is a ZIP archive or an office document"),
    ("a.md", b"one\ntwo\ncaf\xe9 au", Code.ENCODING, "byte 0xE9 at offset 11 (line 3)"),
    ("a.csv", b"\xef\xbb\xbfa,b\n1,\xff\n", Code.ENCODING, "byte 0xFF at offset 9 (line 2)"),
    ("a.csv", (b"a," + b"b" * 97 + b"\n") * 3000 + b"\xff", Code.ENCODING, "offset 300000 (line 3001)"),
    ("a.txt", b"cut \xe2\x82", Code.ENCODING, "byte 0xE2 at offset 4"),
    ("a.txt", b"\xff\xfea\0\x00\xd8b\0", Code.ENCODING, "a.txt is not UTF-16: byte 0x00 at offset 4"),
    ("a.txt", "x".encode("utf-32"), Code.ENCODING, "a.txt is UTF-32"),
]
# What a limit says about it: file, content, target, limits, code, what the sentence says.
BOUNDS = [
    ("a.docx", "x", "html", {}, Code.UNSUPPORTED, "a.docx has the extension '.docx': only .md, .markdown"),
    ("a.md", "x", "pdf", {}, Code.UNSUPPORTED, "a.md cannot become 'pdf': choose one of html, text, json."),
    ("a.md", "", "html", {}, Code.EMPTY, "a.md is empty"),
    ("a.md", "x" * 2048, "html", {"document_bytes": 1024}, Code.TOO_LARGE, "has 2 KiB: the limit is 1 KiB."),
    ("a.csv", "a,b\n" * 512, "html", {"csv_bytes": 1024}, Code.TOO_LARGE, "has 2 KiB: the limit is 1 KiB."),
    ("a.csv", "a,b\n" * 99, "json", {"output_bytes": 99}, Code.TOO_LARGE, "becomes larger than 99 bytes"),
    ("a.html", "<p>" * 100_000, "html", {"memory_bytes": 48 << 20}, Code.TOO_LARGE, "than 48 MiB, the limit"),
    (
        "a.html",
        "<i>" * 30,
        "html",
        {"depth": 20},
        Code.TOO_DEEP,
        "too deeply: the limit is 20 levels.",
    ),
]


@pytest.mark.parametrize(("name", "content", "code", "says"), CONTENTS)
def test_content_is_refused_by_code_and_sentence(name, content, code, says, become):
    with pytest.raises(ConversionRefused) as refused:
        become(name, content, "json")
    assert refused.value.code == code
    assert says in refused.value.message


@pytest.mark.parametrize(("name", "content", "to", "limits", "code", "says"), BOUNDS)
def test_bound_is_kept_and_nothing_is_left(name, content, to, limits, code, says, put, tmp_path):
    source = put(name, content)
    with pytest.raises(ConversionRefused) as refused:
        convert_file(source, tmp_path / "target", to, limits=Limits(**limits))
    assert refused.value.code == code
    assert refused.value.message.startswith(name)
    assert says in refused.value.message
    assert str(tmp_path) not in refused.value.message
    assert list(tmp_path.iterdir()) == [source]


def test_every_code_of_the_document_is_reached_by_a_test():
    elsewhere = {Code.MISSING, Code.TOO_SLOW, Code.FAILED}  # the tests below
    assert {row[2] for row in CONTENTS} | {row[4] for row in BOUNDS} | elsewhere == set(Code)


@pytest.mark.parametrize("code", Code)
def test_codes_belong_to_the_content_family_by_name(code):
    assert "_VALIDATION_" in code or code.endswith("_FAILED")


def _gone(tmp_path):
    return tmp_path / "gone.md"


def _folder(tmp_path):
    (tmp_path / "folder.md").mkdir()
    return tmp_path / "folder.md"


def _pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.md")
    return tmp_path / "pipe.md"


def _impossible(tmp_path):
    return tmp_path / "a\0b.md"


@pytest.mark.parametrize("make", [_gone, _folder, _pipe, _impossible])
def test_what_is_no_file_is_missing_and_nobody_waits_for_it(make, tmp_path):
    source = make(tmp_path)
    with pytest.raises(ConversionRefused, match=r"\.md") as refused:
        convert_file(source, tmp_path / "target", "html")
    assert refused.value.code == Code.MISSING
    assert not (tmp_path / "target").exists()


def test_size_is_judged_before_any_work(put, tmp_path, monkeypatch):
    source = put("big.csv", "")
    os.truncate(source, 121 << 20)  # sparse: it takes no disk
    monkeypatch.setattr(processes, "command", lambda request: pytest.fail("a process was started"))
    with pytest.raises(ConversionRefused, match=r"big\.csv has 121 MiB: the limit is 120 MiB"):
        convert_file(source, tmp_path / "target", "json")


def test_people_read_the_name_they_gave(put, tmp_path):
    with pytest.raises(ConversionRefused, match=r"^Straße\.md is empty"):
        convert_file(put("stra-e.md", ""), tmp_path / "target", "html", name="Straße.md")


def test_refusal_leaves_the_former_target_as_it_was(put, tmp_path):
    target = put("target", "former")
    with pytest.raises(ConversionRefused):
        convert_file(put("a.md", b"\xff"), target, "html")
    assert target.read_text() == "former"


# -- the machine's fault, or a library's --


def _instead(monkeypatch, program: str) -> None:
    monkeypatch.setattr(processes, "command", lambda request: [sys.executable, "-c", program])


@pytest.mark.parametrize(
    ("program", "kind", "code"),
    [
        ("import os; os.kill(os.getpid(), 11)", ConversionRefused, Code.FAILED),
        ("import os; os.abort()", ConversionRefused, Code.FAILED),
        ("import os; os.kill(os.getpid(), 9)", ConverterUnavailable, Trouble.UNAVAILABLE),
        ("raise SystemExit(3)", ConverterUnavailable, Trouble.UNAVAILABLE),
        ("import os; os.write(1, b'half an ans')", ConverterUnavailable, Trouble.UNAVAILABLE),
    ],
)
def test_crash_of_the_child_is_an_answer_and_not_a_crash(program, kind, code, put, tmp_path, monkeypatch):
    source = put("a.md", "x")
    _instead(monkeypatch, program)
    with pytest.raises(kind) as raised:
        convert_file(source, tmp_path / "target", "html")
    assert raised.value.code == code
    assert list(tmp_path.iterdir()) == [source]


def test_converter_that_cannot_be_started_is_unavailable(put, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "command", lambda request: [str(tmp_path / "no-such-python")])
    with pytest.raises(ConverterUnavailable, match="cannot be started"):
        convert_file(put("a.md", "x"), tmp_path / "target", "html")


def test_library_that_fails_is_named_and_bounded(put, tmp_path, monkeypatch):
    answer = {"refused": [Code.FAILED, "a.md cannot be converted (ValueError: no)."]}
    _instead(monkeypatch, f"print({json.dumps(answer)!r})")
    with pytest.raises(ConversionRefused, match="ValueError: no"):
        convert_file(put("a.md", "x"), tmp_path / "target", "html")


def test_folder_that_cannot_be_written_is_the_callers_to_see(put, tmp_path):
    with pytest.raises(FileNotFoundError):
        convert_file(put("a.md", "x"), tmp_path / "nowhere" / "target", "html")


@pytest.mark.parametrize("nameless", [True, False], ids=["nameless", "named"])
def test_result_replaces_the_target_in_one_step_on_any_file_system(nameless, put, tmp_path, monkeypatch):
    if not nameless:
        monkeypatch.setattr(drafts, "_nameless", lambda folder: None)
    source, target = put("a.txt", "new"), put("target", "former")
    convert_file(source, target, "text")
    assert target.read_text() == "new\n"
    with pytest.raises(ConversionRefused):
        convert_file(put("a.txt", b"\xff"), target, "text")
    assert sorted(tmp_path.iterdir()) == [source, target]


def test_full_disk_is_not_the_documents_fault(monkeypatch):
    from demo.convert import child, work

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(work, "convert", full)
    read, write = os.pipe()
    answer = child.answer(Request("a.md", "markdown", "html", read, write, 0, Limits()))
    os.close(read)
    os.close(write)
    assert "No space left" in answer["unavailable"]


@pytest.mark.parametrize(
    ("end", "kind", "code"),
    [
        ({"late": True, "processor": 29.0}, ConversionRefused, Code.TOO_SLOW),
        ({"late": True, "processor": 1.0}, ConverterUnavailable, Trouble.TIMEOUT),
        ({"status": -signal.SIGXCPU}, ConversionRefused, Code.TOO_SLOW),
        ({"status": -signal.SIGABRT, "out_of_memory": True}, ConversionRefused, Code.TOO_LARGE),
        ({"status": -signal.SIGSEGV}, ConversionRefused, Code.FAILED),
        ({"status": 1}, ConverterUnavailable, Trouble.UNAVAILABLE),
    ],
)
def test_silence_is_judged_by_how_the_child_ended(end, kind, code):
    request = Request("a.md", "markdown", "html", 0, 0, 0, Limits())
    how = {"late": False, "status": -9, "processor": 0.0, "out_of_memory": False} | end
    with pytest.raises(kind) as raised:
        verdict.found(verdict.of_silence(request, **how))
    assert raised.value.code == code
