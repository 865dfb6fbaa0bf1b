"""A client of Interlock's REST API: enqueue, follow and cancel jobs, and run them (see README.md)."""

from interlock_client.client import Client, Enqueue, Event, Job
from interlock_client.context import Cancelled, Context, Fail, LeaseLost, Skip, Wait
from interlock_client.effects import (
    AlreadyThere,
    Declined,
    Effect,
    EffectAbandoned,
    EffectDeclined,
    EffectNotSent,
    Found,
    NotFound,
    NotSent,
    Request,
    Sent,
)
from interlock_client.problems import (
    CancelRequested,
    Fenced,
    KeyConflict,
    NoAnswer,
    Problem,
    StaleInput,
    WorkerEnded,
)
from interlock_client.worker import Kind, Worker

__all__ = [
    "AlreadyThere",
    "CancelRequested",
    "Cancelled",
    "Client",
    "Context",
    "Declined",
    "Effect",
    "EffectAbandoned",
    "EffectDeclined",
    "EffectNotSent",
    "Enqueue",
    "Event",
    "Fail",
    "Fenced",
    "Found",
    "Job",
    "KeyConflict",
    "Kind",
    "LeaseLost",
    "NoAnswer",
    "NotFound",
    "NotSent",
    "Problem",
    "Request",
    "Sent",
    "Skip",
    "StaleInput",
    "Wait",
    "Worker",
    "WorkerEnded",
]
