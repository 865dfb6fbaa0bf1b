"""What has to be known, and right, before a worker starts: its name, its kinds and their leases."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from jobs import handlers


class Unfit(Exception):
    """The worker cannot start like this; the text says why and what to change."""


def new_id() -> str:
    """Return a worker id that no other start has had or will have."""
    return f"{socket.gethostname()[:100]}:{os.getpid()}:{uuid.uuid4().hex}"


def boot_id() -> str:
    """Return what tells one boot of this machine from the next, where it says so."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()[:40]
    except OSError:
        return ""


def pid_namespace() -> str:
    """Return what tells one process table of a machine from another, where it says so."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())[:40]
    except OSError:
        return ""


def process_started(pid: int) -> int | None:
    """Return when a process was started, in ticks since boot; None where there is none, or only its
    remains."""
    try:
        state, *rest = (
            Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
        )
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else int(rest[18])


def check_leases(kinds: Sequence[str]) -> None:
    """Raise Unfit when two lost heartbeats would cost a healthy job of some kind its lease."""
    beat, standard = settings.INTERLOCK["HEARTBEAT_SECONDS"], settings.INTERLOCK["LEASE_SECONDS"]
    for kind in kinds:
        lease = handler_of(kind).lease or standard
        if lease < 3 * beat:
            raise Unfit(
                f"kind {kind} has a lease of {lease} s, which must be at least three heartbeats of {beat} s: "
                "lengthen its lease or set INTERLOCK_HEARTBEAT_SECONDS lower"
            )


def known(wanted: Sequence[str] | None) -> list[str]:
    """Return the kinds to run, all that this process knows by default; raises Unfit for one it does not."""
    all_kinds = handlers.known_kinds()
    unknown = sorted(set(wanted or ()) - set(all_kinds))
    if unknown:
        names = ", ".join(all_kinds) or "none"
        raise Unfit(f"this process knows no kind {', '.join(unknown)}; it knows {names}")
    return sorted(wanted) if wanted else all_kinds


def handler_of(kind: str) -> handlers.Handler:
    """Return the handler of a kind that this process knows."""
    found = handlers.find(kind)
    assert found is not None, kind  # noqa: S101  (checked when the worker was made)
    return found
