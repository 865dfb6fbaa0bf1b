"""Saved views: filters of a list that a person keeps under a name. No job depends on them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

PAGES = ("inbox", "jobs")


class SavedView(models.Model):
    """The filters of one list, as its address says them. A shared one is seen by whoever sees the list."""

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views")
    page = models.CharField(max_length=10, choices=[(page, page) for page in PAGES])
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000)
    shared = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()
        permissions = (("share_view", _("Can share a saved view")),)
        constraints = (
            models.UniqueConstraint(fields=("owner", "page", "name"), name="saved_view_once"),
            models.CheckConstraint(name="saved_view_page_known", condition=models.Q(page__in=PAGES)),
        )
        indexes = (models.Index("page", "name", condition=models.Q(shared=True), name="saved_view_shared"),)

    def __str__(self) -> str:
        return f"{self.page}: {self.name}"
