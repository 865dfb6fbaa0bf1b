"""What waits for a second person, a ruling that somebody asked for or a sending; and whose word counts.

Lists, counts and rulings judge by the same comparison, so that nobody is shown what he may not answer.
"""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import F, FilteredRelation, Q, QuerySet

from jobs.ledger import indexed
from jobs.models import Case, Proposal
from jobs.models.case import Verdict
from jobs.operations.actor import APPROVE, LONGEST, person_of

READ = 1000
"""Questions read, those of the oldest cases first; beyond that nobody could tell them apart anyway."""
ME, ANYBODY = "me", "anybody"
_COLUMNS = ("case_id", "verdict", "by", "at", "asked", "case__job__enqueued_by")
_STAKES = ("case__effect_kind", "case__amount", "case__currency", "case__sla_due_at")


class Question(NamedTuple):
    """One decision that waits for another person's word."""

    case_id: uuid.UUID
    verdict: str
    by: str
    at: datetime
    asked: str
    enqueued_by: str
    effect_kind: str
    amount: Decimal | None
    currency: str
    sla_due_at: datetime | None

    @property
    def is_sending(self) -> bool:
        """Whether something is to be sent; else it is a ruling."""
        return self.verdict == Verdict.SEND


def waiting(now: datetime, *, using: str = "default") -> list[Question]:
    """Return every question that can still be answered, along `proposal_open_once`."""
    still = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
    found = indexed.unanswered(Proposal.objects.using(using)).filter(still, case__closed_at__isnull=True)
    rows = found.order_by("case_id").values_list(*_COLUMNS, *_STAKES)[:READ]
    return [Question(*row) for row in rows]


def for_answer(questions: list[Question], user: Any) -> list[Question]:
    """Keep the questions that `user` may answer: none without the permission, and never his own."""
    if not user.has_perm(APPROVE):
        return []
    name, account = user.get_username()[:LONGEST], str(user.pk)
    return [
        q
        for q in questions
        if not is_own(q.verdict, q.by, q.asked, enqueued_by=q.enqueued_by, name=name, account=account)
    ]


def is_own(verdict: str, by: str, asked: str, *, enqueued_by: str, name: str, account: str) -> bool:
    """Whether somebody would answer himself: by his name, by his account, or as whoever wanted it sent."""
    names = {by}
    if verdict == Verdict.SEND:
        names |= {enqueued_by, person_of(by), person_of(enqueued_by)}
    return name in names or json.loads(asked).get("account") == account


def narrowed(word: str, user: Any, now: datetime) -> Q:
    """Cases that wait for the word of `me`, this user, or of `anybody`."""
    questions = waiting(now)
    found = for_answer(questions, user) if word == ME else questions
    return Q(pk__in=[question.case_id for question in found])


def with_questions(cases: QuerySet[Case]) -> QuerySet[Case]:
    """Tell of each case, in the same query, what is asked of a second person; see `asked_of`."""
    unanswered = FilteredRelation("proposals", condition=Q(proposals__decision=""))
    return cases.annotate(question=unanswered).annotate(
        question_verdict=F("question__verdict"),
        question_by=F("question__by"),
        question_at=F("question__at"),
        question_until=F("question__expires_at"),
    )


class Asked(NamedTuple):
    """What somebody asks of a second person in a case."""

    verdict: str
    by: str
    at: datetime
    expires_at: datetime | None


def asked_of(case: Any, now: datetime) -> Asked | None:
    """Return what waits in a case of `with_questions`; None where nothing does, or its time is over."""
    if case.question_verdict is None or case.closed_at is not None:
        return None
    return _still(Asked(case.question_verdict, case.question_by, case.question_at, case.question_until), now)


def still(proposal: Proposal | None, now: datetime) -> Asked | None:
    """Return what an open proposal asks; None where its time is over."""
    if proposal is None:
        return None
    return _still(Asked(proposal.verdict, proposal.by, proposal.at, proposal.expires_at), now)


def _still(asked: Asked, now: datetime) -> Asked | None:
    return asked if asked.expires_at is None or asked.expires_at > now else None
