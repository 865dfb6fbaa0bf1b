"""Addresses of our pages, asked for often: a list names one in each of its rows, the menu all of them."""

from __future__ import annotations

import uuid
from functools import lru_cache

from django.urls import get_script_prefix, reverse

_NOBODY = uuid.UUID(int=0)


def address(name: str) -> str:
    """Return the address of a page that has no argument."""
    return _address(name, get_script_prefix())


def address_of(name: str, thing: uuid.UUID) -> str:
    """Return the address of a page whose one argument is an id."""
    before, after = _around(name, get_script_prefix())
    return f"{before}{thing}{after}"


@lru_cache(maxsize=256)
def _address(name: str, _prefix: str) -> str:
    return reverse(name)


@lru_cache(maxsize=64)
def _around(name: str, _prefix: str) -> tuple[str, str]:
    before, _, after = reverse(name, args=[_NOBODY]).partition(str(_NOBODY))
    return before, after
