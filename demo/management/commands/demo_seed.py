"""`manage.py demo_seed`: logins and real files for the demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from demo import people, store
from demo.kinds import convert
from jobs.handlers import Options
from jobs.models import Job

FILES = Path(__file__).resolve().parents[2] / "files"
TARGETS = ("html", "text", "json")


class Command(BaseCommand):
    help = (
        "Make a login per role with new passwords and print them, and enqueue the demonstration's files for "
        "conversion, each once. Safe to run again. For demonstrations only: never on a production database."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        new = self._enqueue()
        self.stdout.write(
            f"demo: {new} documents enqueued" if new else "demo: the documents are enqueued already"
        )
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
                    unique_key=f"demo:{path.name}:{to}", unique_scope="ever", enqueued_by="demo_seed"
                ).enqueue(source=source, to=to, name=path.name)
                new += answer.created
        if new:
            Job.objects.enqueue(
                "reports.nightly",
                {"note": "no worker of the demonstration knows this kind"},
                options=Options(
                    queue="reports", label="A kind that nobody here knows", enqueued_by="demo_seed"
                ),
            )
            path, source = next(iter(sources.items()))
            convert.with_options(
                delay=86_400, label="The same again, tomorrow", enqueued_by="demo_seed"
            ).enqueue(source=source, to="html", name=path.name)
        return new
