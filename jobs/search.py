"""What jobs are found by besides their columns: tags, and those arguments that their kind declares.

A tag is said by whoever enqueues and never changes. An argument is found, exactly and as text, at a dotted
path that the kind names in `@job(search=…)`. Nothing is kept for this that people may not read in the job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from jobs import canon, redact
from jobs.outcomes import InvalidJob

TAG = ""
"""The name that tags are kept under; no path is empty."""
MOST_TAGS, LONGEST_TAG = 20, 50
MOST_PATHS, LONGEST_PATH, LONGEST_VALUE = 10, 100, 200
PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*", re.ASCII)


def tags(given: Any) -> tuple[str, ...]:
    """Return tags without their duplicates, in order; raises InvalidJob naming the limit."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidJob("tags", _("a list of texts"))
    for one in given:
        if problem := tag_problem(one):
            raise InvalidJob("tags", problem)
    found = tuple(dict.fromkeys(given))
    if len(found) > MOST_TAGS:
        raise InvalidJob(
            "tags", _("at most %(most)s of them, not %(n)s") % {"most": MOST_TAGS, "n": len(found)}
        )
    return found


def tag_problem(text: Any) -> str:
    """Return why this is no tag; empty where it is one."""
    if not isinstance(text, str):
        return _("a list of texts")
    if not 1 <= len(text) <= LONGEST_TAG:
        bounds = {"most": LONGEST_TAG, "n": len(text)}
        return _("a tag has 1 to %(most)s characters, not %(n)s") % bounds
    # A comma parts them wherever people write several, a blank in the column.
    if not text.isprintable() or "," in text or any(sign.isspace() for sign in text):
        return _("a tag has printable characters only, no blanks and no commas")
    return ""


def read(paths: Iterable[str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return what stands at each of these paths, as text; whatever cannot be searched for is left out."""
    found = {}
    for path in paths:
        value: Any = arguments
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if text := _text(value):
            found[path] = text
    return found


def _text(value: Any) -> str:
    """Return a scalar as it is searched for; empty for what is none, is nothing, or is too long."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_VALUE else ""
    return canon.canonical(value) if isinstance(value, bool | int | float) else ""


def check(paths: Sequence[str], hidden: Iterable[str]) -> None:
    """Raise ValueError for paths that a kind cannot declare.

    What is `hidden` must not be found either: whoever may search could guess it, one value after the other.
    """
    if len(paths) > MOST_PATHS:
        raise ValueError(f"search: at most {MOST_PATHS} paths, not {len(paths)}")
    for path in paths:
        if not isinstance(path, str) or len(path) > LONGEST_PATH or not PATH.fullmatch(path):
            raise ValueError(
                f"search: {path!r}: names of arguments with dots between, at most {LONGEST_PATH} characters"
            )
        parts = path.split(".")
        if any(redact.names_secret(part) for part in parts):
            raise ValueError(f"search: {path!r} names a secret")
        for rule in hidden:
            # The one above or below the other, or the same.
            if all(own in (part, "*") for part, own in zip(parts, rule.split("."), strict=False)):
                raise ValueError(f"search: {path!r} is redacted, by {rule!r}")
