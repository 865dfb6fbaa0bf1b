"""Jobs as plain text for a terminal: no control character of a job's own reaches it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.operations.exposure import Exposure

# What moves the cursor, recolours, or turns the writing round; a line break in a value would fake a line.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LIST = "{:<36}  {:<10}  {:<24}  {:<14}  {:<19}  {}"


def as_json(value: Any) -> str:
    """Return a document; times to the microsecond, everything beyond ASCII escaped."""
    return json.dumps(value, indent=1, default=_text)


def listed(jobs: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each job, under a head."""
    heads = (_("id"), _("status"), _("kind"), _("queue"), _("created"), _("label"))
    yield _LIST.format(*heads).rstrip()
    for job in jobs:
        status = job["status"] + (" *" if job["hold_reason"] else "")
        row = (job["id"], status, job["kind"], job["queue"], job["created_at"], _named(job))
        yield _LIST.format(*(plain(value) for value in row)).rstrip()
    if any(job["hold_reason"] for job in jobs):
        yield _("* on hold")


def _named(job: dict[str, Any]) -> str:
    """Return a job's label and its tags, each of which begins with #."""
    return " ".join([job["label"], *(f"#{tag}" for tag in job["tags"])]).strip()


def shown(dossier: dict[str, Any]) -> Iterator[str]:
    """Yield all that is known of one job, a part after the other."""
    parts = ("explain", "input", "result", "attempts", "effects", "refusals", "changes")
    yield plain(dossier["explain"]["text"])
    for name, value in dossier.items():
        if name not in parts and value not in (None, "", []):
            yield f"  {name:<20} {plain(' '.join(value) if name == 'tags' else value)}"
    yield from _document(_("Input"), dossier["input"])
    if dossier["result_commit_id"]:
        yield from _document(_("Result"), dossier["result"])
    yield from _part(_("Attempts"), [_attempt(row) for row in dossier["attempts"]])
    yield from _part(_("Effects"), [_effect(row) for row in dossier["effects"]])
    yield from _part(_("Refused writes"), [_refusal(row) for row in dossier["refusals"]])
    yield from _part(_("What people did"), [_change(row) for row in dossier["changes"]])


def plain(value: Any) -> str:
    """Return a value as one line of harmless text."""
    return _UNSAFE.sub(
        "\N{REPLACEMENT CHARACTER}", _seconds(value) if isinstance(value, datetime) else str(value)
    )


def _text(value: Any) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)


def _seconds(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _document(title: str, value: Any) -> Iterator[str]:
    yield ""
    yield title
    for line in json.dumps(value, indent=2, ensure_ascii=False).splitlines():
        yield f"  {plain(line)}"


def _part(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield title
        for line in lines:
            yield f"  {line}"


def _attempt(row: dict[str, Any]) -> str:
    until = plain(row["finished_at"]) if row["finished_at"] else "…"
    line = f"{row['generation']:>4}  {row['status']:<10} {plain(row['started_at'])} – {until}"
    said = ": ".join(part for part in (row["error_code"], row["error_message"]) if part)
    return f"{line}  {plain(row['worker_id'])}  {plain(said)}".rstrip()


def _effect(row: dict[str, Any]) -> str:
    return plain(
        ngettext(
            "%(slot)s (%(kind)s, %(replay)s): %(status)s, version %(version)s, permitted %(grants)s time",
            "%(slot)s (%(kind)s, %(replay)s): %(status)s, version %(version)s, permitted %(grants)s times",
            row["grants"],
        )
        % row
    )


def _refusal(row: dict[str, Any]) -> str:
    return f"{plain(row['at'])}  {row['point']} {row['reason']}: {row['text']} {plain(row['worker_id'])}"


def _change(row: dict[str, Any]) -> str:
    return (
        f"{plain(row['at'])}  {row['verb']} → {row['status']}, {plain(row['actor'])}: {plain(row['reason'])}"
    )


def exposure(price: Exposure) -> Iterator[str]:
    """Yield what ending leases costs."""
    workers = ngettext("%s worker", "%s workers", price.worker_count) % price.worker_count
    attempts = ngettext("%s attempt is lost", "%s attempts are lost", price.attempts) % price.attempts
    yield _("This ends the leases of %(workers)s: %(attempts)s.") % {"workers": workers, "attempts": attempts}
    for worker, leases in price.workers:
        yield f"  {plain(worker)}  {leases}"
    if price.worker_count > len(price.workers):
        yield "  " + _("and %s more") % (price.worker_count - len(price.workers))
    sent = ngettext(
        "%s effect is being sent; its outcome becomes unknown.",
        "%s effects are being sent; their outcome becomes unknown.",
        price.effects,
    )
    yield sent % price.effects
    for amount in price.amounts:
        total = f"{amount.text or _('no amount')} {plain(amount.currency)}".rstrip()
        yield "  " + _("%(number)s, together %(total)s") % {"number": amount.effects, "total": total}
