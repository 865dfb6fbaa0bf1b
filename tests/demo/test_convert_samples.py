"""The files that the demonstration converts, through the front door."""

import json
from pathlib import Path

import pytest

from demo.convert import Code, ConversionRefused, convert_file

FILES = Path(__file__).parents[2] / "demo" / "files"
BAD = {
    "empty.md": Code.EMPTY,
    "addresses-latin1.csv": Code.ENCODING,
    "scan.txt": Code.BINARY,
}
GOOD = sorted(path.name for path in FILES.iterdir() if path.name not in BAD)


@pytest.mark.parametrize("name", GOOD)
def test_good_file_becomes_a_complete_page(name, tmp_path):
    target = tmp_path / "page.html"
    summary = convert_file(FILES / name, target, "html")
    page = target.read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.endswith("</html>\n")
    assert summary.target_bytes == target.stat().st_size
    assert summary.source_bytes == (FILES / name).stat().st_size
    assert summary.counts.get("words") or summary.counts.get("rows")
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("name", GOOD)
def test_good_file_becomes_json_and_text(name, become):
    content = (FILES / name).read_bytes()
    structure = json.loads(become(name, content, "json").text)
    assert structure["source"] == name
    assert structure["kind"] in ("csv", "markdown", "rst", "html", "text")
    assert become(name, content, "text").text.strip()


@pytest.mark.parametrize(("name", "code"), BAD.items())
def test_bad_file_is_refused_and_leaves_nothing(name, code, tmp_path):
    with pytest.raises(ConversionRefused) as refused:
        convert_file(FILES / name, tmp_path / "page.html", "html")
    assert refused.value.code == code
    assert refused.value.message.startswith(name)
    assert list(tmp_path.iterdir()) == []


def test_index_of_the_samples_names_them_all_and_how_they_end():
    index = (FILES / "about-these-files.txt").read_text("utf-8")
    listed = {line.split()[0]: line.split()[-1] for line in index.splitlines() if line.startswith("  ")}
    assert {name for name in listed if "." in name} == {path.name for path in FILES.iterdir()} - {
        "about-these-files.txt"
    }
    assert {name: listed[name] for name in BAD} == {name: code.value for name, code in BAD.items()}
