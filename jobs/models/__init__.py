"""Every table of the product, a file each."""

from jobs.models.attempt import Attempt
from jobs.models.audit import AuditEntry, AuditHead
from jobs.models.case import Case, Comment, Evidence, Proposal, Ruling
from jobs.models.change import Change
from jobs.models.drill import Drill
from jobs.models.effect import EffectSlot
from jobs.models.job import Job
from jobs.models.minute import Minute
from jobs.models.plan import Plan, PlanRow
from jobs.models.preference import Preference
from jobs.models.queue import Queue
from jobs.models.raising import RaiseProposal
from jobs.models.refusal import FenceRefusal
from jobs.models.saved import SavedView
from jobs.models.scheduler import Scheduler
from jobs.models.search import SearchAttribute
from jobs.models.token import ApiToken
from jobs.models.worker import Worker

__all__ = [
    "ApiToken",
    "Attempt",
    "AuditEntry",
    "AuditHead",
    "Case",
    "Change",
    "Comment",
    "Drill",
    "EffectSlot",
    "Evidence",
    "FenceRefusal",
    "Job",
    "Minute",
    "Plan",
    "PlanRow",
    "Preference",
    "Proposal",
    "Queue",
    "RaiseProposal",
    "Ruling",
    "SavedView",
    "Scheduler",
    "SearchAttribute",
    "Worker",
]
