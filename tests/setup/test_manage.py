"""`manage.py` itself: how it ends when nobody reads on."""

import os
import signal
import subprocess
import sys

from config.env import ROOT


def test_output_that_nobody_reads_on_ends_the_command_without_a_word():
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "drills", "--sheet"], cwd=ROOT, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    os.close(reading)  # as `| head` does when it has its lines
    errors = process.communicate(timeout=60)[1]
    assert (process.returncode, errors) == (128 + signal.SIGPIPE, b"")
