"""What is committed speaks of the product only, and installs from anywhere."""

import re
import subprocess

import pytest

from config.env import ROOT

# Spelt in parts, or this file would be its own finding.
REGISTRIES = ["pypi" + ".org", "python" + "hosted", "npm" + "js", "deb." + "debian", "dl-" + "cdn"]
FOLDERS = ["/" + "work/", "/" + "root/", "/" + "home/", "../" + "shared"]


def tracked():
    """Return the files under version control, or those of the folder where there is none (an archive)."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("words", [REGISTRIES, FOLDERS], ids=["registry", "folder"])
def test_no_committed_file_names_a_registry_or_a_machines_folder(words):
    pattern = re.compile("|".join(map(re.escape, words)).encode())
    found = [str(path.relative_to(ROOT)) for path in tracked() if pattern.search(path.read_bytes())]
    assert found == []


@pytest.mark.parametrize("lock", ["runtime", "dev", "latest", "bench", "uv"])
def test_lock_gives_a_version_and_hashes_for_every_package(lock):
    text = (ROOT / f"requirements/{lock}.txt").read_text("utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==\d[\w.]*", entry), entry
        assert "--hash=sha256:" in entry, entry
    assert "index" not in text
    assert "://" not in text


def test_tests_run_on_the_versions_that_are_shipped():
    pins = {
        lock: set(re.findall(r"^[a-z0-9-]+==[\w.]+", (ROOT / f"requirements/{lock}.txt").read_text(), re.M))
        for lock in ("runtime", "dev")
    }
    assert pins["runtime"] <= pins["dev"]


def test_every_direct_dependency_is_explained():
    explained = (ROOT / "docs/dependencies.md").read_text("utf-8")
    for source in ("runtime.in", "dev.in", "bench.in", "uv.in"):
        for line in (ROOT / "requirements" / source).read_text("utf-8").splitlines():
            if name := re.match(r"[a-z][a-z0-9-]*", line):
                assert name[0] in explained, name[0]


def test_make_quotes_without_backticks():
    """In a recipe the shell runs what they enclose: a hint to type `make demo` would start it."""
    recipes = [line for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if line.startswith("\t")]
    assert recipes
    assert not [line for line in recipes if "`" in line]
