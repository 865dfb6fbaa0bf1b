"""Redaction: what a person may read of a payload, an error or a log line.

A rule on data, not on one page: every text that leaves the handler for a place where people look
goes through here first (contract §7, house rule "secrets redacted").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

MASK = "•••"
_SECRET_KEY = re.compile(
    r"(?i)(pass(word|wd|phrase)?|secret|token|api[_-]?key|authorization|cookie|credential|private[_-]?key|card|iban)"
)
_IN_TEXT = re.compile(
    r"(?i)((?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|authorization|cookie|credential)"
    r"[\"']?\s*[:=]\s*)([\"']?)(?:bearer\s+|basic\s+)?[^\s\"',;)}\]]+\2"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def names_secret(key: str) -> bool:
    """Return whether what stands under this name is masked wherever it stands."""
    return _SECRET_KEY.search(key) is not None


def mask(value: Any, paths: Iterable[str] = ()) -> Any:
    """Return a copy of a JSON value with secrets masked.

    A key that names a secret is masked wherever it stands; `paths` adds the kind's own, as dotted
    names (`card.number`, `items.*.iban`).
    """
    return _mask(value, [tuple(path.split(".")) for path in paths])


def _mask(value: Any, paths: list[tuple[str, ...]]) -> Any:
    if () in paths:
        return MASK
    if isinstance(value, dict):
        return {
            key: MASK if _SECRET_KEY.search(key) else _mask(part, _below(paths, key))
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_mask(part, _below(paths, str(index))) for index, part in enumerate(value)]
    return value


def _below(paths: list[tuple[str, ...]], key: str) -> list[tuple[str, ...]]:
    return [path[1:] for path in paths if path and path[0] in (key, "*")]


def secrets_in(value: Any, paths: Iterable[str] = ()) -> set[str]:
    """Return the texts that `mask` would hide in `value`, so that they can be struck from free text."""
    found: set[str] = set()
    _collect(value, [tuple(path.split(".")) for path in paths], False, found)
    return {text for text in found if len(text) >= 4}


def _collect(value: Any, paths: list[tuple[str, ...]], hidden: bool, found: set[str]) -> None:
    hidden = hidden or () in paths
    if isinstance(value, dict):
        for key, part in value.items():
            _collect(part, _below(paths, key), hidden or bool(_SECRET_KEY.search(key)), found)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            _collect(part, _below(paths, str(index)), hidden, found)
    elif hidden and value is not None and not isinstance(value, bool):
        found.add(str(value))


def strike(value: Any, secrets: Iterable[str]) -> Any:
    """Return a copy of a JSON value without `secrets`, wherever they stand: a result may repeat its input."""
    known = frozenset(secrets)
    return _strike(value, known, _struck(value, known)) if known else value


def _strike(value: Any, secrets: frozenset[str], struck: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {struck[key]: _strike(part, secrets, struck) for key, part in value.items()}
    if isinstance(value, list):
        return [_strike(part, secrets, struck) for part in value]
    if isinstance(value, str):
        return struck[value]
    return MASK if str(value) in secrets and not isinstance(value, bool) else value


def _struck(value: Any, secrets: Iterable[str]) -> dict[str, str]:
    """Return each text of a JSON value, without the secrets.

    All are searched as one: thousands of secrets in each of thousands of texts would take seconds. What
    stands between them is in no secret, for no input holds it.
    """
    texts = list(_texts(value))
    joined = "\0".join(text.replace("\0", "\N{REPLACEMENT CHARACTER}") for text in texts)
    for secret in sorted(secrets, key=len, reverse=True):
        joined = joined.replace(secret, MASK)
    return dict(zip(texts, joined.split("\0"), strict=False))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield value


def clean(text: object, *, limit: int, secrets: Iterable[str] = ()) -> str:
    """Return free text that is safe to store and show: no control characters, no secrets, bounded.

    At most `limit` bytes; the end is kept when it must be cut, because a traceback's last lines say most.
    """
    plain = _text(text)
    for secret in sorted(secrets, key=len, reverse=True):
        plain = plain.replace(secret, MASK)
    # Megabytes would be searched for seconds, only to be cut afterwards.
    plain = plain[-(4 * limit + 4096) :]
    plain = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", plain)
    plain = _IN_TEXT.sub(rf"\1{MASK}", plain)
    raw = plain.encode()
    if len(raw) <= limit:
        return plain
    return "… " + raw[len(raw) - max(0, limit - 4) :].decode(errors="ignore")


def plain(value: object) -> str:
    """Return a foreign value as text that every database holds: no control characters, no surrogates."""
    return "" if value is None else _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _text(value))


def described(error: BaseException, *, limit: int) -> str:
    """Return `Type: text` of an exception, its text cleaned and bounded."""
    text = clean(error, limit=limit)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _text(value: object) -> str:
    try:
        return str(value)
    except BaseException:  # noqa: BLE001  (an exception whose __str__ raises must not hide the failure)
        return f"<{type(value).__name__} that cannot be shown as text>"
