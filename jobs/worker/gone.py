"""Proving that a worker's process is gone: what it was sending it can send no more (contract §6, step 3).

A lease that ran out proves nothing: a stopped process wakes up and goes on. Only the machine it ran on can
tell, by its boot and its process table.
"""

from __future__ import annotations

import socket

from jobs.ledger.slots import Slot
from jobs.models import Attempt, Worker
from jobs.verbs.effects import EffectRuntime
from jobs.worker.start import boot_id, pid_namespace, process_started


def prove(runtime: EffectRuntime, slot: Slot) -> bool:
    """Record that the process which was granted a slot is gone, if this machine can tell."""
    if slot.granted_attempt_id is None or slot.settles_in is not None:
        return False
    attempts = Attempt.objects.using(runtime.using)
    attempt = attempts.filter(pk=slot.granted_attempt_id).only("worker_id").first()
    worker = Worker.objects.using(runtime.using).filter(pk=attempt.worker_id).first() if attempt else None
    proof = proof_of(worker) if worker else ""
    return bool(proof) and runtime.prove_gone(slot, proof)


def proof_of(worker: Worker) -> str:
    """Return why a worker's process is surely gone, or nothing where that is not known."""
    here = boot_id()
    if not here or not worker.boot_id:
        return ""
    if worker.boot_id != here:
        # Another boot of this machine; another machine's would have another name.
        return f"{worker.host} was booted again" if worker.host == socket.gethostname()[:100] else ""
    if not _shares_processes(worker):
        return ""
    started = process_started(worker.pid)
    if started is None:
        return f"process {worker.pid} on {worker.host} is gone"
    if worker.pid_started and started != worker.pid_started:
        return f"process {worker.pid} on {worker.host} is another one by now"
    return ""


def _shares_processes(worker: Worker) -> bool:
    """Whether we see the process table that the worker was in: two containers share a boot and no table."""
    return bool(worker.pid_namespace) and worker.pid_namespace == pid_namespace()
