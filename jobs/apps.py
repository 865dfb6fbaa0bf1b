"""The protocol's application: tables, verbs, worker, API."""

from typing import Any

from django.apps import AppConfig
from django.db import connection
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules


class JobsConfig(AppConfig):
    """Finds the kinds of work, and lays the triggers after every migrate (see jobs/ledger/install.py)."""

    name = "jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        from jobs import checks  # noqa: F401  (its checks register themselves)

        post_migrate.connect(_lay, sender=self)
        if connection.vendor == "postgresql":
            from jobs.ledger import instants

            instants.read_quickly()
        # Kinds of work are found by name, as admin classes are: any installed app may have a `kinds` module.
        autodiscover_modules("kinds")


def _lay(sender: AppConfig, *, using: str, **_more: Any) -> None:
    # Imported late: the ledger needs the models, which are not ready when this module is read.
    from jobs.ledger import install

    if sender.models:
        install.lay(using)
