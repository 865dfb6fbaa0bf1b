"""How a measurement ends: well, early with a sentence for people, or by their hand."""

from collections.abc import Callable

from tests.pgtemp import NoServer


class BenchFailed(Exception):
    """Something that is measured did not do what it should; the text is the sentence for people."""


def ended(work: Callable[[], None]) -> int:
    """Do the work of a command and return its exit code."""
    try:
        work()
    except (BenchFailed, NoServer) as reason:
        print(f"bench: {reason}")
        return 1
    except KeyboardInterrupt:
        print("bench: stopped; what was measured until now is kept")
        return 130
    return 0
