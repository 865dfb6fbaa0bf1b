"""How often a web process looks for garbage: seldom, and not among what it loaded to begin with."""

import gc

YOUNG = 50_000
"""So many more objects before it looks again. Five thousand ranked cases are the usual 700 many times over,
and a look in the middle of a request finds nothing."""


def settle() -> None:
    """Leave what has been loaded out of all further looks, and look for cycles seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 100)
