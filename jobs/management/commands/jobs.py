"""`manage.py jobs`: what an operator without a browser needs. Says why, who and under which account."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any, ClassVar

from django.conf import settings
from django.utils.translation import gettext as _

from jobs import searching
from jobs.management import numbers, shell
from jobs.models import Job
from jobs.operations import actor, indexing, jobwork, listing, lookup, printed
from jobs.operations.dossier import dossier, explained, summary
from jobs.outcomes import InvalidJob
from jobs.status import JobStatus

PERMISSIONS = {
    "cancel": actor.CANCEL,
    "force_cancel": actor.FORCE_CANCEL,
    "retry": actor.RETRY,
    "hold": actor.HOLD,
    "unhold": actor.HOLD,
}


class Command(shell.OperatorCommand):
    """Lists, shows and explains jobs, and uses a person's verbs on them."""

    codes: ClassVar[dict[str, int]] = {
        "NOT_FOUND": shell.NOT_FOUND,
        "REASON_MISSING": shell.USAGE,
        "REASON_TOO_LONG": shell.USAGE,
    }

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
            shell.json_argument(added)
            return added

        _list_arguments(verb("list", _("List jobs, newest first.")))
        verb("show", _("Show all that is known of one job.")).add_argument("id", metavar=_("ID"))
        verb("explain", _("Say in one sentence why a job is where it is.")).add_argument(
            "id", metavar=_("ID")
        )
        _act_arguments(verb("cancel", _("Cancel a job, or ask its worker to stop; undoes nothing outside.")))
        force = verb(
            "force-cancel", _("Take a job away from whoever runs it; its code may still be running.")
        )
        force.set_defaults(verb="force_cancel")
        _act_arguments(force)
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

        index = verb("index", _("Let the jobs of a kind be found by the arguments that it declares now."))
        index.add_argument("--kind", required=True, type=shell.text, help=_("a kind that this process knows"))
        shell.database_argument(index)

    def act(self, options: dict[str, Any]) -> None:
        getattr(self, f"_{options['verb']}")(options)

    # -- looking ------------------------------------------------------------------------------------------

    def _list(self, options: dict[str, Any]) -> None:
        page = listing.newest(
            statuses=options["status"] or (),
            kind=options["kind"],
            queue=options["queue"],
            key=options["key"],
            label=options["label"],
            attributes=_attributes(options),
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
        self.tell({"jobs": jobs, "before": page.before, "cut": page.cut}, lines)

    def _show(self, options: dict[str, Any]) -> None:
        found = dossier(lookup.one(options["id"]))
        self.tell(found, printed.shown(found))

    def _explain(self, options: dict[str, Any]) -> None:
        job = lookup.one(options["id"])
        about = explained(job)
        self.tell({"id": job.id, **about}, [printed.plain(about["text"])])

    def _index(self, options: dict[str, Any]) -> None:
        done = sum(indexing.index(options["kind"], using=options["database"]), indexing.Indexed())
        text = _("Jobs looked at: %(jobs)s. Search attributes added: %(added)s, removed: %(removed)s.")
        self.tell({"kind": options["kind"], **done._asdict()}, [text % done._asdict()])

    # -- acting -------------------------------------------------------------------------------------------

    def _cancel(self, options: dict[str, Any]) -> None:
        def cancel(job: Job, seen: int | None, **by: Any) -> bool:
            jobwork.cancel(job.id, seen_version=seen, **by)
            return job.cancel_requested_at is None

        self._work(options, cancel)

    def _force_cancel(self, options: dict[str, Any]) -> None:
        def force_cancel(job: Job, seen: int | None, **by: Any) -> bool:
            jobwork.force_cancel(job.id, seen_version=job.state_version if seen is None else seen, **by)
            return True

        self._work(options, force_cancel)

    def _retry(self, options: dict[str, Any]) -> None:
        def retry(job: Job, seen: int | None, **by: Any) -> bool:
            seen = job.state_version if seen is None else seen
            jobwork.retry(job.id, seen_version=seen, deadline_at=options["deadline"], **by)
            return True

        self._work(options, retry)

    def _hold(self, options: dict[str, Any]) -> None:
        self._work(options, lambda job, seen, **by: jobwork.hold(job.id, seen_version=seen, **by))

    def _unhold(self, options: dict[str, Any]) -> None:
        self._work(options, lambda job, seen, **by: jobwork.unhold(job.id, seen_version=seen, **by))

    def _work(self, options: dict[str, Any], use: Callable[..., bool]) -> None:
        """Use a person's verb and say where the job is now."""
        user = self.person(options)
        actor.admit(user, PERMISSIONS[options["verb"]])  # before it is told whether the job exists
        job = lookup.one(options["id"])
        changed = use(job, options["version"], actor=user, reason=options["reason"])
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
        self.tell(document, lines)


def _attributes(options: dict[str, Any]) -> list[searching.Attribute]:
    """Return what the jobs are to be found by; raises InvalidJob naming the argument that is wrong."""
    found = []
    for name, read in (("arg", searching.argument), ("tag", searching.tag)):
        try:
            found += [read(options[name])] if options[name] is not None else []
        except searching.Unsearchable as error:
            raise InvalidJob(f"--{name}", str(error)) from None
    return found


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
    parser.add_argument("--tag", type=shell.text, help=_("only the jobs with this tag"))
    parser.add_argument(
        "--arg",
        type=shell.text,
        metavar="invoice=INV-17",
        help=_("only the jobs with this value at an argument that their kind declares as searchable"),
    )
    parser.add_argument("--label", default="", type=shell.text, help=_("only labels that contain this"))
    parser.add_argument(
        "--limit",
        type=numbers.whole(1, most),
        default=min(50, most),
        help=_("at most so many; %(most)s is the bound") % {"most": most},
    )
    parser.add_argument("--before", metavar=_("ID"), default="", help=_("only jobs older than this one"))


def _act_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar=_("ID"))
    shell.act_arguments(parser)
    parser.add_argument(
        "--version",
        type=numbers.whole(1, 2**62),
        metavar=_("NUMBER"),
        help=_("refuse if the job is not at this state_version any more"),
    )
