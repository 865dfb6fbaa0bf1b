"""Search attributes: a row for each tag of a job, and for each argument that its kind lets search by."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from jobs import search
from jobs.models.protected import Protected, ProtectedQuerySet


class SearchAttribute(Protected):
    """One thing that a job is found by, as its own row says it. Written by the verbs that write that row."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey("jobs.Job", models.PROTECT, related_name="attributes", db_index=False)
    name = models.CharField(max_length=search.LONGEST_PATH, default="", blank=True)
    """The path of an argument; empty for a tag."""
    value = models.CharField(max_length=search.LONGEST_VALUE)

    objects: ClassVar[models.Manager[SearchAttribute]] = ProtectedQuerySet["SearchAttribute"].as_manager()

    class Meta:
        default_permissions = ("view",)
        indexes = (models.Index("job", name="search_job"),)
        constraints = (
            # In the order of a search: all jobs with one value, newest first when it is read backwards.
            models.UniqueConstraint(fields=("name", "value", "job"), name="search_once"),
        )

    def __str__(self) -> str:
        return f"{self.name}={self.value}" if self.name else self.value
