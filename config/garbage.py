"""When a web process looks for garbage: after an answer, and not among what it loaded to begin with."""

import gc

YOUNG = 50_000
"""So many more objects before it looks in the middle of a request. Five thousand ranked cases are the usual
700 many times over, and one request in sixty waited for a look as long as for all the rest."""
LEFT = 5_000
"""So many more objects before it looks after an answer: what some requests leave, in a few milliseconds."""
OLDER = 20
"""So many looks among the young before one among those that outlived one."""


def settle() -> None:
    """Leave what has been loaded out of all further looks, and look for cycles seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, OLDER, 100)


def tidy() -> None:
    """Look for what the requests have left, where nobody waits for an answer."""
    young, older, _oldest = gc.get_count()
    if young > LEFT:
        gc.collect(1 if older > OLDER else 0)
