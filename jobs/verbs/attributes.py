"""What a job is found by, once its input is another one (contract §3, Revise)."""

from __future__ import annotations

import json
from typing import Any

from jobs import handlers, search
from jobs.ledger import search as rows
from jobs.ledger.session import Session


def renew(session: Session, job_id: Any, kind: str, text: str) -> None:
    """Let a locked job be found by its new input and no more by its old one.

    Where this process does not know the kind, at the paths that the job was found by before.
    """
    handler = handlers.find(kind)
    paths = handler.search if handler else rows.names(session, job_id)
    rows.replace(session, job_id, search.read(paths, json.loads(text)))
