#!/bin/sh
# Runs the tests on the newest Django, which wants Python >= 3.12; says so where there is none.
set -eu
newer='import sys; sys.exit(sys.version_info < (3, 12))'
# A name alone proves nothing: version managers put programs in PATH that only say that they are not installed.
for python in "${PYTHON_LATEST:-}" python3.14 python3.13 python3.12 python3 "$HOME"/.pyenv/versions/3.1[2-9]*/bin/python3; do
    if [ -n "$python" ] && "$python" -c "$newer" 2>/dev/null; then
        if [ ! -e .venv-latest/.latest ] || [ requirements/latest.txt -nt .venv-latest/.latest ]; then
            "$python" requirements/install.py latest
        fi
        exec .venv-latest/bin/python tests/run.py "$@"
    fi
done
echo "test-latest: no Python 3.12 or newer was found; PYTHON_LATEST=/path/to/python3 names one." >&2
exit 1
