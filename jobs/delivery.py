"""Telling the database what came of an effect until it heard: a report is the only proof (contract §4)."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseProblem
from django.db import connections

from jobs import measures, spool
from jobs.ledger.outage import is_outage
from jobs.status import EffectStatus
from jobs.stops import Uncertain
from jobs.verbs.effects import EffectRuntime

log = logging.getLogger("interlock.effects")

KEEP_AGAIN_SECONDS = 60.0
"""How long after the disk took no report it is tried again, and told of."""


def deliver(runtime: EffectRuntime, values: dict[str, Any]) -> EffectStatus | None:
    """Write one report down; what the database will not have is spooled to disk and replayed at start.

    On a disk that takes nothing either it stays here, and the database is asked until it has heard it.
    """
    end = time.monotonic() + settings.INTERLOCK["REPORT_SECONDS"]
    pause = 0.05
    while True:
        try:
            return runtime.report(**(values | {"status": EffectStatus(values["status"])}))
        except DatabaseProblem as error:
            away = is_outage(error)
            if not away or time.monotonic() >= end:
                if _kept(values, error):
                    raise Uncertain("the outcome is kept on disk until the database answers") from error
                if not away:
                    raise
                end = time.monotonic() + KEEP_AGAIN_SECONDS
            if not (connection := connections[runtime.using]).in_atomic_block:
                connection.close()  # one to a server that was demoted would be refused for ever
            time.sleep(pause)
            pause = min(pause * 2, 2.0)


def _kept(values: dict[str, Any], error: DatabaseProblem) -> bool:
    """Keep a report on disk; False, and told, where the disk is full or cannot be written."""
    try:
        spool.keep(values)
    except OSError as trouble:
        more = {"effect": values["effect"], "cause": str(error)[:200], "disk": str(trouble)[:200]}
        log.error("report kept nowhere yet, told again", extra=more)
        return False
    measures.count("reports_spooled")
    log.warning("report kept on disk", extra={"effect": values["effect"], "cause": str(error)[:200]})
    return True
