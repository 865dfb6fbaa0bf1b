"""`manage.py token`: issue, list and revoke tokens of the API. A secret is printed once and never again."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from jobs import audit
from jobs.handlers import QUEUE
from jobs.management import shell
from jobs.models import ApiToken
from jobs.models.audit import Source
from jobs.operations import door, tokens
from jobs.operations.tokens import LONGEST_DAYS
from jobs.outcomes import Refused


class Command(BaseCommand):
    requires_system_checks = []  # those of Django 6.1 open the database

    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Issue, list and revoke tokens of the API (docs/api.md). A token may do what its scopes say and "
            "its user may: who is demoted takes his tokens along."
        )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="create|list|revoke")
        create = verbs.add_parser("create", help=_("issue a token and print its secret, once"))
        create.add_argument(
            "--user", required=True, type=shell.text, help=_("name of the user on whose behalf it acts")
        )
        create.add_argument(
            "--name", required=True, type=_name, help=_("what it is for, at most 100 characters")
        )
        create.add_argument(
            "--scopes",
            required=True,
            type=_scopes,
            help=_("comma-separated, of %s") % ", ".join(ApiToken.SCOPES),
        )
        create.add_argument(
            "--queues", type=_queues, default=[], help=_("comma-separated; without it, every queue")
        )
        create.add_argument(
            "--days", type=_days, default=90, help=_("until it expires, 1 to %s (default 90)") % LONGEST_DAYS
        )
        shell.act_arguments(create)
        verbs.add_parser("list", help=_("list tokens, newest first; never a secret"))
        revoke = verbs.add_parser("revoke", help=_("end a token at once"))
        revoke.add_argument(
            "prefix", type=shell.text, help=_("the first 12 characters of the token, as `list` prints them")
        )
        shell.act_arguments(revoke)

    def handle(self, *args: Any, **options: Any) -> None:
        verb = {"create": self._create, "list": self._list, "revoke": self._revoke}[options["verb"]]
        try:
            with (
                shell.needs_database(),
                audit.through(Source.COMMAND, user=options.get("person") or "", account=door.account()),
            ):
                verb(options)
        except Refused as refused:
            raise CommandError(str(refused)) from None

    def _create(self, options: dict[str, Any]) -> None:
        token, secret = tokens.issue(
            options["name"],
            actor=door.at_shell(options["person"]),
            owner=door.at_shell(options["user"]),
            scopes=options["scopes"],
            queues=options["queues"],
            days=options["days"],
            reason=options["reason"],
        )
        self.stderr.write(
            _("Token %(name)s of %(user)s, good until %(until)s UTC. This is the only time that it is shown:")
            % {"name": token.name, "user": options["user"], "until": f"{token.expires_at:%Y-%m-%d %H:%M}"}
        )
        self.stdout.write(secret)

    def _list(self, options: dict[str, Any]) -> None:
        for token in ApiToken.objects.select_related("user").order_by("-id"):
            used = f"{token.last_used_at:%Y-%m-%d %H:%M}" if token.last_used_at else "never"
            until = f"{token.expires_at:%Y-%m-%d}" if token.expires_at else "-"
            self.stdout.write(
                f"{token.prefix}  {tokens.state(token):<8} {token.user.get_username():<16} {token.name:<20} "
                f"{','.join(token.scopes)}  queues {','.join(token.queues) or 'all'}  "
                f"until {until}  used {used}"
            )

    def _revoke(self, options: dict[str, Any]) -> None:
        if len(options["prefix"]) != 12:
            raise CommandError(_("give the first 12 characters of the token, as `token list` prints them"))
        found = ApiToken.objects.filter(prefix=options["prefix"], revoked_at=None)
        ended = [
            tokens.revoke(token.pk, actor=door.at_shell(options["person"]), reason=options["reason"])
            for token in found
        ]
        if not ended:
            raise CommandError(_("there is no live token %s") % options["prefix"])
        self.stdout.write(_("Revoked %s.") % len(ended))


def _name(text: str) -> str:
    if not text.strip() or len(text) > 100 or not text.isprintable():
        raise ArgumentTypeError(_("1 to 100 printable characters"))
    return text


def _scopes(text: str) -> list[str]:
    scopes = _words(text)
    unknown = [scope for scope in scopes if scope not in ApiToken.SCOPES]
    if unknown or not scopes:
        raise ArgumentTypeError(
            _("no scope %(unknown)s; known are %(known)s")
            % {"unknown": ", ".join(unknown), "known": ", ".join(ApiToken.SCOPES)}
        )
    return scopes


def _queues(text: str) -> list[str]:
    queues = _words(text)
    for queue in queues:
        if not QUEUE.fullmatch(queue):
            raise ArgumentTypeError(_("“%s” is no name of a queue") % queue)
    if not queues:
        raise ArgumentTypeError(_("name at least one queue, or leave the option out for all"))
    return queues


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= LONGEST_DAYS):
        raise ArgumentTypeError(_("a whole number from 1 to %s") % LONGEST_DAYS)
    return int(text)


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
