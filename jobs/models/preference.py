"""What a person sets for himself, for every browser that he logs in with. No job depends on it."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Preference(models.Model):
    """One row for each person who has set something."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="preference"
    )
    zone = models.CharField(max_length=64, default="", blank=True)
    """The time zone in which times are said beside UTC; empty for none."""

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.user_id}: {self.zone}"
