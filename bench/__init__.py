"""Measures the product, and a peer beside it in the same minutes (`python -m bench`, docs/benchmarks.md).

A measure drives processes from outside: clients that enqueue, and real `manage.py runworker` workers. What is
measured is written to var/bench/ as JSON lines; `python -m bench report` makes docs/benchmarks.md of them.
"""

import sys
from pathlib import Path

# The client is a package of its own beside the product, and not installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "client"))
