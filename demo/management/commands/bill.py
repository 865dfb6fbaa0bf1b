"""`manage.py bill FILE.csv`: one job for each invoice of a file."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils.translation import gettext as _

from demo.billing import invoices
from jobs.management import shell


class Command(BaseCommand):
    requires_system_checks = []  # those of Django 6.1 open the database

    help = (
        "Enqueue a charge for each row of a CSV file with the columns invoice, account, amount, currency. An "
        "invoice is billed once, however often its file is given. A row that is wrong is named by line and "
        "field, and then nothing is enqueued."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE.csv", type=Path, help="the invoices")

    def handle(self, *, path: Path, **_options: Any) -> None:
        try:
            rows = invoices.read(path)
            with shell.needs_database(), transaction.atomic():
                answers = invoices.bill(rows, by="bill")
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror or error}") from None
        except invoices.BadFile as bad:
            for problem in bad.problems:
                self.stderr.write(f"{path}: {problem}")
            raise CommandError(_("Nothing was enqueued.")) from None
        for row, answer in zip(rows, answers, strict=True):
            note = "" if answer.created else _("  (billed before)")
            self.stdout.write(f"{answer.job_id}  {row.invoice}{note}")
