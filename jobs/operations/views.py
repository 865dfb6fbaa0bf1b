"""Saved views: keep the filters of a list under a name, forget them, and who sees which."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q

from jobs.models import SavedView
from jobs.operations.actor import admit
from jobs.outcomes import Refused
from jobs.verbs.base import is_blank

SHARE = "jobs.share_view"
SEES = {"inbox": "jobs.view_case", "jobs": "jobs.view_job"}
MOST, LONGEST_NAME, LONGEST_QUERY = 30, 60, 1000


def keep(page: str, name: str, query: str, *, actor: Any, shared: bool = False) -> SavedView:
    """Keep `query`, the part of an address after `?`, under `name`; one's own of that name is replaced.

    Raises Refused VIEW_NAME, VIEW_QUERY, VIEWS_FULL, and NOT_PERMITTED: sharing takes a permission.
    """
    name = " ".join(name.split())
    if not 1 <= len(name) <= LONGEST_NAME or is_blank(name) or "\0" in name:
        raise Refused("VIEW_NAME", most=LONGEST_NAME)
    if len(query) > LONGEST_QUERY:
        raise Refused("VIEW_QUERY", most=LONGEST_QUERY)
    with transaction.atomic():
        person = admit(actor, SEES[page])
        if shared:
            admit(actor, SHARE)
        mine = SavedView.objects.filter(owner=person.user, page=page)
        if mine.exclude(name=name).count() >= MOST:
            raise Refused("VIEWS_FULL", most=MOST)
        view, _ = SavedView.objects.update_or_create(
            owner=person.user, page=page, name=name, defaults={"query": query, "shared": shared}
        )
    return view


def forget(view_id: int, *, actor: Any) -> None:
    """Forget a view: one's own, or with the permission to share anybody's shared one; else VIEW_NOT_FOUND."""
    with transaction.atomic():
        person = admit(actor, *SEES.values())
        views = Q(owner=person.user)
        if person.user.has_perm(SHARE):
            views |= Q(shared=True)
        if not SavedView.objects.filter(views, pk=view_id).delete()[0]:
            raise Refused("VIEW_NOT_FOUND")


def seen_by(user: Any, page: str) -> list[SavedView]:
    """Return the person's own views of a list, then the newest that others share, by name."""
    seen = SavedView.objects.filter(Q(owner=user) | Q(shared=True), page=page)
    seen = seen.select_related("owner").only("page", "name", "query", "shared", "owner__username")
    own_first = ExpressionWrapper(Q(owner=user), output_field=BooleanField())
    found = list(seen.order_by(own_first.desc(), "name")[: 2 * MOST])
    own = [view for view in found if view.owner_id == user.pk]
    return [*own[:MOST], *found[len(own) :][:MOST]]
