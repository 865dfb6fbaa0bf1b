"""What waits for a second person, read once for each request: the menu counts it, the pages list it."""

from __future__ import annotations

from django.http import HttpRequest

from console import bounded, environment
from jobs.operations import approvals
from jobs.operations.actor import APPROVE
from jobs.operations.approvals import Question


def every(request: HttpRequest) -> list[Question]:
    """Return every open question."""
    found: list[Question] | None = getattr(request, "questions", None)
    if found is None:
        found = approvals.waiting(environment.surroundings(request).now)
        request.questions = found  # type: ignore[attr-defined]
    return found


def mine(request: HttpRequest) -> list[Question]:
    """Return the questions that this person may answer; nothing is read for who may answer none."""
    if not request.user.has_perm(APPROVE):
        return []
    found: list[Question] | None = getattr(request, "my_questions", None)
    if found is None:
        found = approvals.for_answer(every(request), request.user)
        request.my_questions = found  # type: ignore[attr-defined]
    return found


def count(questions: list[Question]) -> bounded.Count:
    """Return how many there are; of very many only some were read."""
    return bounded.Count(len(questions), len(questions) >= approvals.READ)
