"""Verifying the audit chain, and anchors: where the chain ended, kept where the database cannot reach.

The seals show every change by somebody without the key. What they cannot show is a tail cut off together
with the head's row, or an older copy of the whole database: only an anchor taken before can (docs/audit.md).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.db import DataError, OperationalError, connections
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from jobs import audit, seals
from jobs.ledger import audit as rows
from jobs.ledger.clock import clock
from jobs.ledger.session import Session, transact
from jobs.models.audit import SEALED, AuditEntry, AuditHead
from jobs.vocabulary import JOB

PAGE = 500
KEPT = 100
"""Faults told one by one; a chain written anew has as many as entries, and they are counted only."""
FIELDS = (*SEALED, "hash")
ANCHORED = ("seq", "hash", "at", "key_id")


class Fault(StrEnum):
    """What is wrong at one place of the chain."""

    EDITED = "edited"
    """The seal is not the seal of this content: edited, or written by somebody without the key."""
    OUT_OF_PLACE = "out_of_place"
    """It does not follow the entry before it: moved, inserted or replaced."""
    MISSING = "missing"
    """Numbers are missing: deleted."""
    UNKNOWN_KEY = "unknown_key"
    """The key of the seal is not in AUDIT_KEY or AUDIT_OLD_KEYS, so nothing is known of it."""
    HEAD_MISSING = "head_missing"
    HEAD_DIFFERS = "head_differs"
    """The head names another last entry than there is."""
    TRUNCATED = "truncated"
    """The head, or an anchor, tells of entries beyond the last one."""
    ANCHOR_DIFFERS = "anchor_differs"
    """The chain was written anew since the anchor was taken."""
    ANCHOR_FORGED = "anchor_forged"
    """An anchor without a true seal: damaged, or not one of ours."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault and where it is; `line` is that of a file of anchors."""

    fault: Fault
    seq: int
    until: int = 0
    line: int = 0

    def sentence(self) -> str:
        """Return it as a person reads it."""
        return _SENTENCES[self.fault]() % asdict(self)


@dataclass
class Report:
    """What a verification found."""

    entries: int = 0
    last: int = 0
    anchors: int = 0
    newest_anchor: int | None = None
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the chain is whole as far as can be told."""
        return not self.counts

    def add(self, fault: Fault, seq: int, *, until: int = 0, line: int = 0) -> None:
        """Count a fault, and keep it while there are few."""
        self.counts[fault.value] += 1
        if len(self.findings) < KEPT:
            self.findings.append(Finding(fault, seq, until or seq, line))


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where the chain ended at an instant; `mac` seals the four, so that a file of them cannot be forged."""

    seq: int
    hash: str
    at: str
    key_id: str
    mac: str

    def line(self) -> str:
        """Return the anchor as one line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))


class NothingToAnchor(RuntimeError):
    """An anchor would swear to a broken chain: its end is unsound or contradicts the last anchor."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def anchor(using: str, earlier: Iterable[str] = ()) -> Anchor:
    """Return the chain's end, sealed.

    Raises NothingToAnchor where its last entry is not sound, or where lines of `earlier` anchors tell of a
    chain that this one does not go on with. Walks nothing: `verify` does.
    """
    ring = seals.keyring()
    head = AuditHead.objects.using(using).first()
    last = _entry(using, head.seq) if head else None
    if head is None or (
        head.seq > 0 and (last is None or last["hash"] != head.hash or not _sealed(last, ring))
    ):
        raise NothingToAnchor
    known = [line for line in earlier if line.strip()]
    if known:
        before = _read(known[-1])
        if before is None or not _honest(before, ring) or before.seq > head.seq:
            raise NothingToAnchor
        entry = _entry(using, before.seq)
        if before.seq > 0 and (entry is None or entry["hash"] != before.hash):
            raise NothingToAnchor
    what: dict[str, Any] = {
        "seq": head.seq,
        "hash": head.hash,
        "at": audit.stamp(clock(using)),
        "key_id": seals.key_id(settings.AUDIT_KEY),
    }
    return Anchor(**what, mac=_mac(settings.AUDIT_KEY, what))


def verify(using: str, anchors: Iterable[str] = ()) -> Report:
    """Walk the whole chain, a page at a time, and compare it with the head and with lines of `anchors`."""
    report = Report()
    walk = _Walk(using, seals.keyring(), report)
    walk.expect(anchors)
    walk.on()
    # Read after the last entry and written with it: a head behind an entry is no race. Entries that were
    # appended meanwhile are walked as well.
    head = AuditHead.objects.using(using).first()
    if head is None:
        report.add(Fault.HEAD_MISSING, report.last)
    elif head.seq < report.last or (head.seq == report.last and head.hash != walk.previous):
        report.add(Fault.HEAD_DIFFERS, head.seq)
    elif head.seq > report.last:
        walk.wanted[head.seq].append((0, head.hash))
        walk.on()
    walk.end()
    return report


def sound(entry: AuditEntry) -> bool:
    """Return whether one entry's seal is the seal of what it says; its place is for `verify` to judge."""
    return _sealed({name: getattr(entry, name) for name in FIELDS}, seals.keyring())


def note(using: str, report: Report) -> None:
    """Keep a verification's outcome for /metrics."""

    def work(session: Session) -> None:
        rows.note_check(session, seq=report.last, ok=report.ok)

    transact(work, using=using, vocabulary=JOB, durable=False)


class _Walk:
    """Where a verification is. `wanted` are seals that it must meet, each with its line (0 is the head)."""

    def __init__(self, using: str, ring: dict[str, str], report: Report) -> None:
        self.using = using
        self.ring = ring
        self.report = report
        self.previous = ""
        self.wanted: dict[int, list[tuple[int, str]]] = defaultdict(list)

    def expect(self, lines: Iterable[str]) -> None:
        """Take in the lines of a file of anchors, each judged by its own seal first."""
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            self.report.anchors += 1
            found = _read(line)
            if found is None:
                self.report.add(Fault.ANCHOR_FORGED, 0, line=number)
            elif found.key_id not in self.ring:
                self.report.add(Fault.UNKNOWN_KEY, found.seq, line=number)
            elif not _honest(found, self.ring):
                self.report.add(Fault.ANCHOR_FORGED, found.seq, line=number)
            else:
                self.report.newest_anchor = max(found.seq, self.report.newest_anchor or 0)
                self.wanted[found.seq].append((number, found.hash))

    def on(self) -> None:
        """Judge the entries that are there beyond the last one judged."""
        while page := self._page():
            for entry in page:
                if type(entry["seq"]) is not int:  # SQLite takes anything for a number
                    self.report.add(Fault.OUT_OF_PLACE, 0)
                    return
                self._judge(entry)

    def end(self) -> None:
        """Judge what was not met, and rows that no walk along the numbers comes by."""
        self.wanted.pop(0, None)  # the chain before its first entry
        last = self.report.last
        for seq, said in sorted(self.wanted.items()):
            for line, _hash in said:
                if seq > last:
                    self.report.add(Fault.TRUNCATED, last + 1, until=seq, line=line)
                else:
                    self.report.add(Fault.ANCHOR_DIFFERS if line else Fault.HEAD_DIFFERS, seq, line=line)
        # A number twice, or none: somebody has taken the primary key away.
        beyond = Count("seq", filter=Q(seq__gt=last))
        found = AuditEntry.objects.using(self.using).aggregate(every=Count("*"), beyond=beyond)
        if found["every"] - found["beyond"] != self.report.entries:
            self.report.add(Fault.OUT_OF_PLACE, 0)

    def _page(self) -> list[dict[str, Any]]:
        chain = AuditEntry.objects.using(self.using).order_by("seq")
        if self.report.entries:
            chain = chain.filter(seq__gt=self.report.last)
        try:
            return list(chain.values(*FIELDS)[:PAGE])
        except _UNREADABLE as error:
            self._only_sqlite(error)
            numbers = list(chain.values_list("seq", flat=True)[:PAGE])
            return [self._alone(seq) for seq in numbers]

    def _alone(self, seq: int) -> dict[str, Any]:
        try:
            return _entry(self.using, seq) or {"seq": seq}
        except _UNREADABLE as error:
            self._only_sqlite(error)
            return {"seq": seq}

    def _only_sqlite(self, error: Exception) -> None:
        """SQLite takes anything for an instant or a text; elsewhere it is the connection that failed."""
        if connections[self.using].vendor != "sqlite":
            raise error

    def _judge(self, entry: dict[str, Any]) -> None:
        report, seq = self.report, entry["seq"]
        expected = report.last + 1
        key_id, hash_ = str(entry.get("key_id", "")), str(entry.get("hash", ""))
        if seq > expected:
            report.add(Fault.MISSING, expected, until=seq - 1)
        # After a gap nobody can say what came before.
        follows = seq > expected or (seq == expected and str(entry.get("prev_hash", "")) == self.previous)
        if not follows:
            report.add(Fault.OUT_OF_PLACE, seq)
        elif key_id and key_id not in self.ring:
            report.add(Fault.UNKNOWN_KEY, seq)
        elif not _sealed(entry, self.ring):
            report.add(Fault.EDITED, seq)
        for line, wanted in self.wanted.pop(seq, ()):
            if wanted != hash_:
                report.add(Fault.ANCHOR_DIFFERS if line else Fault.HEAD_DIFFERS, seq, line=line)
        report.entries += 1
        report.last, self.previous = seq, hash_


def _entry(using: str, seq: int) -> dict[str, Any] | None:
    entry: dict[str, Any] | None = AuditEntry.objects.using(using).filter(seq=seq).values(*FIELDS).first()
    return entry


def _sealed(entry: dict[str, Any], ring: dict[str, str]) -> bool:
    try:
        return seals.same(audit.seal_of(ring[entry["key_id"]], entry), entry["hash"])
    except (KeyError, TypeError, ValueError, AttributeError):  # no value that we wrote
        return False


def _read(line: str) -> Anchor | None:
    try:
        found = Anchor(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None
    texts = (found.hash, found.at, found.key_id, found.mac)
    return found if type(found.seq) is int and all(type(text) is str for text in texts) else None


def _honest(found: Anchor, ring: dict[str, str]) -> bool:
    key = ring.get(found.key_id)
    return key is not None and seals.same(found.mac, _mac(key, asdict(found)))


def _mac(key: str, what: dict[str, Any]) -> str:
    return seals.seal(key, "anchor", {name: str(what[name]) for name in ANCHORED})


_UNREADABLE = (ValueError, TypeError, DataError, OperationalError)
_SENTENCES: dict[Fault, Callable[[], str]] = {
    Fault.EDITED: lambda: _("Entry %(seq)s does not bear the seal of its content: it was edited or forged."),
    Fault.OUT_OF_PLACE: lambda: _(
        "Entry %(seq)s does not follow the one before it: moved, inserted or replaced."
    ),
    Fault.MISSING: lambda: _("Entries %(seq)s to %(until)s are missing."),
    Fault.UNKNOWN_KEY: lambda: _("The key that sealed %(seq)s is not known: see AUDIT_OLD_KEYS."),
    Fault.HEAD_MISSING: lambda: _("The row that says where the chain ends is missing."),
    Fault.HEAD_DIFFERS: lambda: _("The row that says where the chain ends names another entry at %(seq)s."),
    Fault.TRUNCATED: lambda: _("Entries %(seq)s to %(until)s are missing at the end."),
    Fault.ANCHOR_DIFFERS: lambda: _("Entry %(seq)s is not the one that was anchored (line %(line)s)."),
    Fault.ANCHOR_FORGED: lambda: _("Line %(line)s of the anchors is damaged or forged."),
}
