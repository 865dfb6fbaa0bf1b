"""The console as a Django application."""

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class ConsoleConfig(AppConfig):
    """Lays the groups after every migrate."""

    name = "console"
    verbose_name = "Interlock"

    def ready(self) -> None:
        from console import groups

        post_migrate.connect(groups.lay_after_migrate, sender=apps.get_app_config("jobs"))
