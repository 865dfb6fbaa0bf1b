"""Numbers as they are typed: parsers for argparse that name the bounds.

Apart from shell.py, whose operations a worker's start need not read.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

from django.utils.translation import gettext as _


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a parser of whole numbers within these bounds."""

    def parse(given: str) -> int:
        if not (given.isascii() and given.isdigit() and len(given) < 20 and least <= int(given) <= most):
            raise ArgumentTypeError(
                _("a whole number from %(least)s to %(most)s is needed") % {"least": least, "most": most}
            )
        return int(given)

    return parse


def seconds(given: str) -> float:
    """Parse how long something may take."""
    try:
        found = float(given)
    except ValueError:
        raise ArgumentTypeError(_("a number of seconds is needed")) from None
    if not 0 <= found <= 86_400:
        raise ArgumentTypeError(_("from 0 to 86400 seconds"))
    return found
