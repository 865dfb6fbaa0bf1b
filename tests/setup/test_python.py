"""Which Python `make` builds its environment with."""

import os
import subprocess
import sys

import pytest

from config.env import ROOT

NEEDED = "import sys, venv, ensurepip; assert sys.version_info >= (3, 11)"


def chosen(folder, script):
    """Return what requirements/python.sh prints where `python3` is that script."""
    python3 = folder / "python3"
    python3.write_text(script, "utf-8")
    python3.chmod(0o755)
    done = subprocess.run(
        ["sh", "requirements/python.sh"],
        cwd=ROOT,
        env={"PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("arguments", ["'--enable-optimizations'", None])
def test_python3_is_taken_unless_it_is_known_to_be_slow(tmp_path, arguments):
    """Only a build that says how it was made, and not so, is passed over."""
    before = f"import sysconfig; sysconfig.get_config_var = lambda name: {arguments!r}"
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(before, "utf-8")
    script = f'#!/bin/sh\nPYTHONPATH="{tmp_path}/site" exec "{sys.executable}" "$@"\n'
    assert chosen(tmp_path, script) == "python3"


def test_what_is_taken_in_place_of_a_slow_python3_can_make_the_environment(tmp_path):
    taken = chosen(tmp_path, "#!/bin/sh\nexit 0\n")
    assert taken in ("python3", "/usr/bin/python3")
    if taken != "python3":
        subprocess.run([taken, "-c", NEEDED], check=True)


def test_a_missing_python3_is_left_to_make_to_complain_of(tmp_path):
    assert chosen(tmp_path, "#!/bin/sh\nexit 127\n") == "python3"
