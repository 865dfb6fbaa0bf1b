"""The reconciler: asks providers what became of effects, before a person has to (contract §6).

It has a thread and a connection of its own, because a provider may take its time. No transaction is open
while one is asked; `inquiring_until` on the slot keeps two workers from asking at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from jobs import effect_kinds, measures, spool
from jobs.inquiry import inquire
from jobs.ledger import inquiries
from jobs.ledger.outage import is_outage
from jobs.ledger.session import Session
from jobs.runtime import DurableJobRuntime
from jobs.status import EffectStatus
from jobs.verbs.base import HOOKS
from jobs.verbs.effects import EffectRuntime
from jobs.worker import gone

log = logging.getLogger("interlock.worker")

EVERY_SECONDS, EMBEDDED_SECONDS = 5.0, 1.0
"""Between two passes. The second where no notification can tell that a person asked for an inquiry."""
ASK_EVERY_SECONDS, LONGEST_SECONDS = 30, 900
"""A provider that could not say is asked again after this times the number of questions, at most the longest,
and at once when its time to settle is over."""
PAGE = 20


class Reconciler:
    """Settles what inquiries can settle, for jobs of `queues` and `kinds`. `clock` is seconds since boot."""

    def __init__(
        self,
        runtime: DurableJobRuntime,
        *,
        worker_id: str,
        queues: Sequence[str],
        kinds: Sequence[str],
        clock: Callable[[], float],
    ) -> None:
        self.effects = EffectRuntime(runtime.vocabulary, hooks=HOOKS, using=runtime.using)
        self.worker_id = worker_id
        self.queues = queues
        self.kinds = kinds
        self.clock = clock
        self.passed: dict[str, float] = {}

    @property
    def is_needed(self) -> bool:
        """Whether this process knows anything to ask, or has anything left to say."""
        return any(kind.inquirable for kind in effect_kinds.registered()) or any(True for _ in spool.kept())

    def turn(self, *, now: datetime | None = None) -> int:
        """Say what was kept, then ask about a page of effects; returns how many were settled."""
        self.replay()
        settled = 0
        session = Session(self.effects.using, self.effects.vocabulary, now)
        known = {kind.name: kind for kind in effect_kinds.registered() if kind.inquirable}
        for effect_id, kind_name, asked_by in inquiries.to_ask(
            session,
            queues=self.queues,
            kinds=self.kinds,
            effects=sorted(known),
            every=ASK_EVERY_SECONDS,
            longest=LONGEST_SECONDS,
            limit=PAGE,
        ):
            slot = self.effects.read(effect_id)
            if slot is not None:
                gone.prove(self.effects, slot)
            actor = asked_by or f"worker {self.worker_id}"
            settled += inquire(self.effects, effect_id, known[kind_name], actor=actor) is not None
        self.passed["reconcile"] = self.clock()
        return settled

    def replay(self) -> int:
        """Tell the database what an outage kept from it; returns how many reports it heard."""
        heard = 0
        for path, values in spool.kept():
            try:
                self.effects.report(**_report(values))
            except Exception as error:
                if is_outage(error):
                    raise
                # It stays where it is: it may be the only proof that something was done. The others, and all
                # that is to be asked, must not wait for it.
                measures.count("duty_errors.replay")
                log.exception("kept report not understood", extra={"file": path.name})
                continue
            spool.forget(path)
            heard += 1
        return heard


def _report(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"status": EffectStatus(values["status"])}
