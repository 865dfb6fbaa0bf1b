"""`Job.objects`: every verb of the protocol, and the reads of a query set."""

from __future__ import annotations

from jobs.verbs.base import HOOKS
from jobs.verbs.cluster import ClusterVerbs
from jobs.verbs.enqueue import EnqueueVerbs
from jobs.verbs.holder import LONGEST_LEASE, HolderVerbs
from jobs.verbs.person import PersonVerbs

__all__ = ["HOOKS", "LONGEST_LEASE", "JobManager"]


class JobManager(EnqueueVerbs, HolderVerbs, PersonVerbs, ClusterVerbs):
    """Every write on jobs. Query set methods that would write raise LedgerOnly."""
