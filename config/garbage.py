"""How often a web process looks for garbage: seldom, and not among what it loaded to begin with."""

import gc

YOUNG = 50_000
"""Objects made since the last look before the next one: a list of five thousand cases makes more than the usual
700 many times over, and each look in the middle of a request finds nothing."""


def settle() -> None:
    """Leave what has been loaded out of all further looks, and look for cycles seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 100)
