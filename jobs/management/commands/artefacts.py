"""`manage.py artefacts`: remove the files of attempts that came to nothing. For a daily run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.core.files.storage import default_storage
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from jobs.api.fields import parse_uuid
from jobs.ledger.clock import clock
from jobs.management import shell
from jobs.models import Attempt
from jobs.status import AttemptStatus

ROOT = "attempts"
KEPT = timedelta(days=1)
PAGE = 500


class Command(BaseCommand):
    requires_system_checks = []
    """Those of Django 6.1 ask an SQLite file, and what stands against that would be a traceback."""

    @property
    def help(self) -> str:  # type: ignore[override]
        return _("Remove the files of attempts that ended a day ago or earlier and were not committed.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            removed = _tidy()
        except OSError as error:  # often the files are another account's than the one that cron uses
            raise CommandError(f"{error.filename}: {error.strerror}.") from None
        self.stdout.write(_("Removed the files of %s attempts.") % removed)


def _tidy() -> int:
    """Remove what is over and return of how many attempts it was."""
    removed = 0
    folders = _folders()
    for start in range(0, len(folders), PAGE):
        with shell.needs_database():
            over = dead(folders[start : start + PAGE])
        for folder in over:
            _remove(f"{ROOT}/{folder}")
            removed += 1
    return removed


def dead(folders: Sequence[str]) -> list[str]:
    """Return those of these folders that are of attempts which ended long enough ago without a commit."""
    by_id = {attempt: folder for folder in folders if (attempt := parse_uuid(folder))}
    ended = Attempt.objects.filter(pk__in=by_id, finished_at__lt=clock() - KEPT)
    over = ended.exclude(status__in=(AttemptStatus.COMMITTED, AttemptStatus.RUNNING))
    return [by_id[attempt] for attempt in over.values_list("pk", flat=True)]


def _folders() -> list[str]:
    try:
        return sorted(default_storage.listdir(ROOT)[0])
    except FileNotFoundError:
        return []


def _remove(folder: str) -> None:
    """Delete a folder's files, and the folder where the storage has such."""
    for name in default_storage.listdir(folder)[1]:
        default_storage.delete(f"{folder}/{name}")
    default_storage.delete(folder)
