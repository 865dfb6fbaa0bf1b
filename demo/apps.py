"""The demonstration as a Django application."""

from django.apps import AppConfig, apps
from django.utils.translation import gettext_lazy as _


class DemoConfig(AppConfig):
    """Adds the conversions to the console's menu."""

    name = "demo"
    verbose_name = "Demonstration"

    def ready(self) -> None:
        if not apps.is_installed("console"):
            return
        from django.utils.module_loading import import_string

        from console.site import register_page

        # The page is imported with the first request for it: a worker, which has none, saves the memory.
        register_page(
            "work",
            _("Conversions"),
            "admin:conversions",
            "jobs.view_job",
            path="conversions/",
            view=lambda *args, **kwargs: import_string("demo.pages.ConversionsPage").as_view()(
                *args, **kwargs
            ),
            icon="page",
        )
        register_page(
            "",
            _("Conversion"),
            "admin:conversion-file",
            "jobs.view_job",
            path="conversions/<uuid:job_id>/file",
            view=lambda *args, **kwargs: import_string("demo.pages.conversion_file")(*args, **kwargs),
        )
