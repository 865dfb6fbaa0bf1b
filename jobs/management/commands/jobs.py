"""`manage.py jobs`: what an operator without a browser needs. Says why, who and under which account."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import OperationalError, ProgrammingError
from django.utils.translation import gettext as _

from jobs import audit
from jobs.management import shell
from jobs.models import Job
from jobs.models.audit import Source
from jobs.operations import door, listing, lookup, printed
from jobs.operations.dossier import dossier, explained, summary
from jobs.outcomes import Refused
from jobs.status import JobStatus

REFUSED, USAGE, NOT_FOUND, NO_DATABASE = 1, 2, 3, 4
_CODES = {"NOT_FOUND": NOT_FOUND, "REASON_MISSING": USAGE, "REASON_TOO_LONG": USAGE}


class Command(BaseCommand):
    """Lists, shows and explains jobs, and uses a person's verbs on them."""

    requires_system_checks = []

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Look at jobs and act on them. An id may be cut to its first digits (at least 8) where that is "
            "unique. Secrets are masked. Exit codes: 0 done, 1 refused, 2 bad usage, 3 no such job, "
            "4 the database cannot be used."
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar=_("VERB"))

        def verb(name: str, text: str) -> ArgumentParser:
            added: ArgumentParser = verbs.add_parser(name, help=text, description=text)
            added.add_argument("--json", action="store_true", help=_("print one JSON document"))
            return added

        _list_arguments(verb("list", _("List jobs, newest first.")))
        verb("show", _("Show all that is known of one job.")).add_argument("id", metavar=_("ID"))
        verb("explain", _("Say in one sentence why a job is where it is.")).add_argument(
            "id", metavar=_("ID")
        )
        _act_arguments(verb("cancel", _("Cancel a job, or ask its worker to stop; undoes nothing outside.")))
        retry = verb("retry", _("Bring a failed, cancelled or skipped job back with a fresh budget."))
        _act_arguments(retry)
        retry.add_argument(
            "--deadline",
            type=shell.instant,
            metavar=_("INSTANT"),
            help=_("a new deadline, with its time zone"),
        )
        _act_arguments(verb("hold", _("Keep a job from being claimed until `unhold`.")))
        _act_arguments(verb("unhold", _("Lift the hold of a job.")))

    def handle(self, *_args: Any, **options: Any) -> None:
        self.json: bool = options["json"]
        try:
            getattr(self, f"_{options['verb']}")(options)
        except lookup.BadId as error:
            text = _("%(id)s is no id: at least %(least)s of its hexadecimal digits are needed.")
            self._end(USAGE, "BAD_ID", text % {"id": str(error), "least": lookup.LEAST})
        except lookup.Ambiguous as error:
            ids = ", ".join(str(job_id) for job_id in error.ids)
            self._end(USAGE, "AMBIGUOUS_ID", _("Several jobs begin like this, among them %s.") % ids)
        except lookup.NotFound as error:
            self._end(NOT_FOUND, "NOT_FOUND", str(Refused("NOT_FOUND", job_id=str(error.args[0]))))
        except Refused as refused:
            self._end(_CODES.get(refused.code, REFUSED), refused.code, str(refused), refused.params)
        except (OperationalError, ProgrammingError) as error:  # the latter: nobody has migrated it
            reason = str(error).strip().splitlines()[0]
            self._end(NO_DATABASE, "NO_DATABASE", _("The database cannot be used: %s.") % reason)

    # -- looking ------------------------------------------------------------------------------------------

    def _list(self, options: dict[str, Any]) -> None:
        page = listing.newest(
            statuses=options["status"] or (),
            kind=options["kind"],
            queue=options["queue"],
            key=options["key"],
            label=options["label"],
            before=lookup.bounds(options["before"])[0] if options["before"] else None,
            limit=options["limit"],
        )
        jobs = [summary(job) for job in page.jobs]
        lines = [*printed.listed(jobs)]
        if page.cut:
            text = _("Only the newest %(window)s were looked at; go on with --before %(id)s")
            lines.append(text % {"window": listing.WINDOW, "id": page.before})
        elif page.before:
            lines.append(_("There are more; go on with --before %s") % page.before)
        self._print({"jobs": jobs, "before": page.before, "cut": page.cut}, lines)

    def _show(self, options: dict[str, Any]) -> None:
        found = dossier(lookup.one(options["id"]))
        self._print(found, printed.shown(found))

    def _explain(self, options: dict[str, Any]) -> None:
        job = lookup.one(options["id"])
        about = explained(job)
        self._print({"id": job.id, **about}, [printed.plain(about["text"])])

    # -- acting -------------------------------------------------------------------------------------------

    def _cancel(self, options: dict[str, Any]) -> None:
        def cancel(job: Job, **by: Any) -> bool:
            Job.objects.cancel(job.id, **by)
            return job.cancel_requested_at is None

        self._act(options, cancel)

    def _retry(self, options: dict[str, Any]) -> None:
        def retry(job: Job, *, state_version: int | None, **by: Any) -> bool:
            seen = job.state_version if state_version is None else state_version
            Job.objects.retry(job.id, state_version=seen, deadline_at=options["deadline"], **by)
            return True

        self._act(options, retry)

    def _hold(self, options: dict[str, Any]) -> None:
        self._act(options, lambda job, **by: Job.objects.hold(job.id, **by))

    def _unhold(self, options: dict[str, Any]) -> None:
        self._act(options, lambda job, **by: Job.objects.unhold(job.id, **by))

    def _act(self, options: dict[str, Any], use: Callable[..., bool]) -> None:
        """Use a person's verb and say where the job is now."""
        if not options["reason"].strip():
            raise Refused("REASON_MISSING")
        actor = door.person(options["person"], options["verb"])
        job = lookup.one(options["id"])
        with audit.through(Source.COMMAND, user=options["person"]):
            changed = use(job, actor=actor, reason=options["reason"], state_version=options["version"])
        job.refresh_from_db()
        about = explained(job)
        document = {
            "id": job.id,
            "verb": options["verb"],
            "changed": changed,
            "status": job.status,
            "state_version": job.state_version,
            "explain": about,
        }
        lines = [f"{job.id} {job.status}: {printed.plain(about['text'])}"]
        if not changed:
            lines.append(_("It was so already; nothing was changed."))
        self._print(document, lines)

    # -- answering ----------------------------------------------------------------------------------------

    def _print(self, document: dict[str, Any], lines: Iterable[str]) -> None:
        for line in [printed.as_json(document)] if self.json else lines:
            self.stdout.write(line)

    def _end(self, status: int, code: str, text: str, params: dict[str, Any] | None = None) -> NoReturn:
        if self.json:
            self.stdout.write(
                printed.as_json({"error": {"code": code, "params": params or {}, "text": text}})
            )
        else:
            self.stderr.write(printed.plain(text))
        sys.exit(status)


def _list_arguments(parser: ArgumentParser) -> None:
    most = settings.INTERLOCK["PAGE_ROWS"]
    parser.add_argument(
        "--status",
        action="append",
        choices=[status.value for status in JobStatus],
        help=_("only jobs with this status; may be given several times"),
    )
    parser.add_argument("--kind", default="", type=shell.text, help=_("only this kind"))
    parser.add_argument("--queue", default="", type=shell.text, help=_("only this queue"))
    parser.add_argument("--key", default="", type=shell.text, help=_("only the jobs with this unique key"))
    parser.add_argument("--label", default="", type=shell.text, help=_("only labels that contain this"))
    parser.add_argument(
        "--limit",
        type=_within(1, most),
        default=min(50, most),
        help=_("at most so many; %(most)s is the bound") % {"most": most},
    )
    parser.add_argument("--before", metavar=_("ID"), default="", help=_("only jobs older than this one"))


def _act_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar=_("ID"))
    parser.add_argument(
        "--reason", required=True, type=shell.text, help=_("why, in your own words; it is kept")
    )
    parser.add_argument(
        "--as",
        dest="person",
        required=True,
        metavar=_("USER"),
        help=_("whose permission this uses; kept too"),
    )
    parser.add_argument(
        "--version",
        type=_within(1, 2**62),
        metavar=_("NUMBER"),
        help=_("refuse if the job is not at this state_version any more"),
    )


def _within(least: int, most: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise ArgumentTypeError(
                _("a whole number from %(least)s to %(most)s is needed") % {"least": least, "most": most}
            )
        return int(text)

    return whole
