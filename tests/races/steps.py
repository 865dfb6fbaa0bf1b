"""What one SQL statement touches, and when the order of two of them can matter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

NOTHING: frozenset[str] = frozenset()
BEGIN, COMMIT, ROLLBACK = "BEGIN", "COMMIT", "ROLLBACK"
BESIDE = frozenset({"jobs_attempt", "jobs_effectslot", "jobs_change", "jobs_fencerefusal"})
"""Rows that are only written under the lock of their job's row: a hold before them shows no other order."""

_FILE = frozenset({"the whole file"})
_WRITE = re.compile(r"\b(LOCK TABLE|(?<!KEY )(?<!FOR )(?<!DO )UPDATE|INSERT INTO|DELETE FROM) \"?(\w+)")
_READ = re.compile(r"\b(?:FROM|JOIN) \"?(\w+)")
_LOCKING = re.compile(r"\bFOR (NO KEY UPDATE|UPDATE|SHARE)")
_UNSEEN = ("pg_notify", "SAVEPOINT")


@dataclass(frozen=True)
class Step:
    """One statement, or the end of a transaction with all that the transaction has touched."""

    label: str = ""
    table: str = ""
    reads: frozenset[str] = NOTHING
    shares: frozenset[str] = NOTHING
    """Tables locked against an exclusive lock only."""
    writes: frozenset[str] = NOTHING
    """Tables written, or with rows locked."""
    final: bool = False
    """Whether what it writes is committed, or its locks are let go, by itself."""
    keeps_snapshot: bool = False
    """Whether its transaction goes on seeing what had been committed when it began."""

    def seen(self, beside: frozenset[str]) -> bool:
        """Return whether another actor could notice it at all."""
        if self.final and self.label in (COMMIT, ROLLBACK):
            return not self.touches <= beside
        return self.table not in beside and not any(word in self.label for word in _UNSEEN)

    @property
    def touches(self) -> frozenset[str]:
        return self.reads | self.shares | self.writes

    def meets(self, other: Step) -> bool:
        """Return whether the order of the two can matter.

        What is not committed nobody reads; a lock is met by a lock; the end of a transaction is met by
        whatever reads what it wrote or waits for what it locked.
        """
        if (self.final or other.final) and (self.keeps_snapshot or other.keeps_snapshot):
            return True
        met = self.writes & (other.writes | other.shares) or self.shares & other.writes
        if self.final:
            met = met or self.writes & other.touches
        if other.final:
            met = met or other.writes & self.touches
        return bool(met)

    def may_wait_for(self, held: Step) -> bool:
        """Return whether a transaction that touched `held` may make this statement wait."""
        met = self.writes & (held.writes | held.shares) or self.shares & held.writes
        return bool(met) and self.label not in (COMMIT, ROLLBACK)

    def after(self, earlier: Step) -> Step:
        """Return this step with what its transaction touched before."""
        return Step(
            self.label,
            self.table,
            self.reads | earlier.reads,
            self.shares | earlier.shares,
            self.writes | earlier.writes,
            self.final,
            self.keeps_snapshot,
        )


@cache
def step_of(sql: str) -> Step:
    """Return a statement as a step, with a label of two or three words."""
    if sql.startswith(BEGIN):
        return Step(BEGIN, writes=_FILE)
    reads = _READ.findall(sql)
    found = _WRITE.search(sql)
    if found is None:
        if not reads:
            return Step(sql.strip()[-40:])
        locks = bool(_LOCKING.search(sql))
        verb, table = "SELECT FOR" if locks else "SELECT", reads[0]
        writes = frozenset({table}) if locks else NOTHING
    else:
        verb, table = found[1].split()[0], found[2]
        if "ROW SHARE MODE" in sql:
            return Step(f"{verb} {table}", table, shares=frozenset({table}))
        writes = frozenset({table})
    return Step(f"{verb} {table}", table, frozenset(reads), writes=writes)
