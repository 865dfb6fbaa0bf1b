"""What a scenario is made of: steps, each with its action and what must be observed after it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Literal

from django.utils.translation import gettext_noop as _


class Action(StrEnum):
    """What a step does; the value is how it is written in a trace."""

    ENQUEUE = _("enqueue")
    CLAIM = _("claim {actor}")
    RENEW = _("renew {actor}")
    FINISH_DONE = _("finish {actor} done")
    FINISH_UNCERTAIN = _("finish {actor} uncertain")
    EXIT = _("{actor} exits; reopen the database")
    ACT_UNANSWERED = _("{actor} acts outside; response lost")
    ACT_AGAIN = _("{actor} acts outside again")
    READ_OUTSIDE = _("read the outside ledger")
    ASK_APPROVAL = _("{actor} prepares; approval is asked")
    APPROVE = _("a person approves")
    ACT_GRANTED = _("{actor} granted, acts outside; response lost")
    INQUIRE = _("{actor} inquires: found")


class Kept(Enum):
    """A value that the step leaves as it was."""

    KEPT = "kept"


KEPT = Kept.KEPT
Returned = bool | int | str | None


@dataclass(frozen=True, slots=True)
class Step:
    """One action at `t` seconds, what its actor must be told, the row it must leave, and one sentence why.

    `t_chosen` marks a time that the exercise does not give.
    """

    t: float
    action: Action
    actor: str
    returned: Returned
    status: str
    generation: int
    why: str
    lease_until: float | Literal[Kept.KEPT] | None = KEPT
    outside_actions: int | Literal[Kept.KEPT] = KEPT
    slot: str | Literal[Kept.KEPT] | None = KEPT
    t_chosen: bool = False

    @property
    def text(self) -> str:
        """The action as a trace writes it."""
        return self.action.format(actor=self.actor)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named course of events. `times_chosen`: the exercise gives no times but the start.

    `replay` is the replay policy of the job's effect slot; without one it runs on the job-state table.
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    note: str = ""
    replay: str = ""
    times_chosen: bool = False
