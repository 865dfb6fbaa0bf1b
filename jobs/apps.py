"""The protocol's application: tables, verbs, worker, API."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class JobsConfig(AppConfig):
    """Lays the triggers and the scheduler's row after every migrate (see jobs/ledger/triggers.py)."""

    name = "jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        post_migrate.connect(_lay, sender=self)


def _lay(sender: AppConfig, *, using: str, **_more: Any) -> None:
    # Imported late: the ledger needs the models, which are not ready when this module is read.
    from jobs.ledger import install

    if sender.models:
        install.lay(using)
