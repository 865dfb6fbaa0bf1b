"""`manage.py demo_seed`: logins, real files and invoices for the demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from demo import people, store
from demo.billing import invoices, trouble
from demo.billing.kinds import remind
from demo.kinds import convert
from jobs.handlers import Options
from jobs.management import shell
from jobs.models import Job

FILES = Path(__file__).resolve().parents[2] / "files"
TARGETS = ("html", "text", "json")


class Command(BaseCommand):
    requires_system_checks = []  # those of Django 6.1 open the database

    help = (
        "Make a login per role with new passwords and print them, enqueue the demonstration's files for "
        "conversion and its invoices for billing, each once. Safe to run again. For demonstrations only: "
        "never on a production database."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        with shell.needs_database():
            self._seed()

    def _seed(self) -> None:
        new = self._enqueue()
        self.stdout.write(
            f"demo: {new} documents enqueued" if new else "demo: the documents are enqueued already"
        )
        self.stdout.write(self._bill())
        self.stdout.write("demo: log in as")
        for name, password in people.make():
            self.stdout.write(f"  {name:<12} {password}")

    @staticmethod
    def _enqueue() -> int:
        """Enqueue every sample file to every target, and one for tomorrow; returns how many were new."""
        new = 0
        sources = {path: store.keep_source(path) for path in sorted(FILES.iterdir()) if path.is_file()}
        for path, source in sources.items():
            for to in TARGETS:
                answer = convert.with_options(
                    unique_key=f"demo:{path.name}:{to}",
                    unique_scope="ever",
                    enqueued_by="demo_seed",
                    tags=("sample",),
                ).enqueue(source=source, to=to, name=path.name)
                new += answer.created
        if new:
            Job.objects.enqueue(
                "reports.nightly",
                {"note": "no worker of the demonstration knows this kind"},
                options=Options(
                    queue="reports",
                    label="A kind that nobody here knows",
                    enqueued_by="demo_seed",
                    tags=("sample", "nightly"),
                ),
            )
            path, source = next(iter(sources.items()))
            convert.with_options(
                delay=86_400, label="The same again, tomorrow", enqueued_by="demo_seed"
            ).enqueue(source=source, to="html", name=path.name)
        return new

    @staticmethod
    def _bill() -> str:
        """Enqueue the sample invoices, one of them with bad luck, and a reminder; returns what was done."""
        rows = invoices.read(FILES / "invoices.csv")
        unlucky = next(row for row in rows if row.invoice == trouble.INVOICE)
        last = rows[-1]
        remind.with_options(
            unique_key=f"reminder:{last.invoice}", unique_scope="ever", enqueued_by="demo_seed"
        ).enqueue(
            invoice=last.invoice, to=f"{last.account}@example.com", amount=last.amount, currency=last.currency
        )
        if not settings.DEMO_PROVIDER_URL:
            return "demo: no invoice is billed, because DEMO_PROVIDER_URL names no payment service"
        try:
            trouble.order(lose_answer=not Job.objects.filter(unique_key=unlucky.key).exists())
        except OSError as error:
            raise CommandError(f"the payment service at {settings.DEMO_PROVIDER_URL}: {error}.") from None
        with transaction.atomic():
            new = sum(answer.created for answer in invoices.bill(rows, by="demo_seed"))
        return f"demo: {new} invoices billed" if new else "demo: the invoices are billed already"
