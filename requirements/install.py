"""Makes a virtual environment and installs one locked set of packages into it: what `make` calls first.

    python3 requirements/install.py runtime|dev|latest|bench

Runs on the system's own Python: standard library only, in the language of Python 3.6, so that a Python that
is too old can read this file as far as the sentence that says so.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = Path("requirements")
# Set: (folder of the environment, oldest Python).
SETS = {
    "runtime": (".venv", (3, 11)),
    "dev": (".venv", (3, 11)),
    "latest": (".venv-latest", (3, 12)),
    "bench": (".venv-bench", (3, 11)),
}


def main(name):
    """Install the set, or stop with one sentence."""
    folder, oldest = SETS[name]
    if sys.version_info < oldest:
        wanted, here = (".".join(map(str, version[:2])) for version in (oldest, sys.version_info))
        stop(f"Python {wanted} or newer is needed and {sys.executable} is {here}; PYTHON=… names another.")
    home = ROOT / folder
    # The run-time set alone would take the development tools away again.
    if name == "runtime" and (home / ".dev").exists():
        name = "dev"
    python = home / "bin" / "python"
    if not works(python):
        make_environment(home)
    say(f"installing requirements/{name}.txt into {folder}")
    install(python, LOCKS / f"{name}.txt")
    for stamp in {name, "runtime"}:
        (home / f".{stamp}").touch()


def works(python):
    """Return whether the interpreter of an earlier set-up is there and still runs."""
    return python.exists() and run([python, "-m", "pip", "--version"]).returncode == 0


def make_environment(home):
    """Make an empty environment in place of a missing or broken one."""
    version = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    say(f"making a virtual environment with {version} ({sys.executable})")
    shutil.rmtree(home, ignore_errors=True)
    made = run([sys.executable, "-m", "venv", home])
    if made.returncode:
        # Half an environment would look like a whole one to the next call.
        shutil.rmtree(home, ignore_errors=True)
        stop(
            f"no virtual environment could be made; on Debian, apt install python3-venv ({last_line(made)})."
        )


def install(python, lock):
    """Install exactly what the lock names, by uv if it can be had, else by pip."""
    tool = LOCKS / "uv.txt"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--require-hashes", "-r"]
    if run([*pip, tool]).returncode == 0:
        uv = [python, "-m", "uv", "pip", "sync", "--quiet", "--python", python, "--require-hashes"]
        if run([*uv, tool, lock]).returncode == 0:
            return
    # pip reads settings that uv does not, such as a company's index in pip.conf.
    say("uv could not install them, so pip does, which takes longer")
    done = run([*pip, lock])
    if done.returncode:
        stop(f"the packages could not be installed ({last_line(done)}).")


def run(command):
    """Run a program in the project's folder and keep what it prints."""
    return subprocess.run(
        [str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def last_line(done):
    """Return the line that best says why a program failed."""
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or ["it gave no reason"])[-1].rstrip(".")


def say(text):
    """Print what is done next."""
    print(f"setup: {text}", flush=True)


def stop(text):
    """End with a sentence."""
    sys.exit(f"setup: {text}")


if __name__ == "__main__":
    main(sys.argv[1])
