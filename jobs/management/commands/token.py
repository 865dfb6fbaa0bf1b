"""`manage.py token`: issue, list and revoke tokens of the API. A secret is printed once and never again."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.handlers import QUEUE
from jobs.models import ApiToken
from jobs.permissions import NEEDS

LONGEST_DAYS = 3650


class Command(BaseCommand):
    @property
    def help(self) -> str:  # type: ignore[override]
        return _(
            "Issue, list and revoke tokens of the API (docs/api.md). A token may do what its scopes say and "
            "its user may: who is demoted takes his tokens along."
        )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="create|list|revoke")
        create = verbs.add_parser("create", help=_("issue a token and print its secret, once"))
        create.add_argument("--user", required=True, help=_("name of the user on whose behalf it acts"))
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
        verbs.add_parser("list", help=_("list tokens, newest first; never a secret"))
        revoke = verbs.add_parser("revoke", help=_("end a token at once"))
        revoke.add_argument("prefix", help=_("the first 12 characters of the token, as `list` prints them"))

    def handle(self, *args: Any, **options: Any) -> None:
        verb = {"create": self._create, "list": self._list, "revoke": self._revoke}[options["verb"]]
        verb(options)

    def _create(self, options: dict[str, Any]) -> None:
        model = get_user_model()
        user = model.objects.filter(**{model.USERNAME_FIELD: options["user"]}).first()
        if user is None:
            raise CommandError(_("there is no user “%s”") % options["user"])
        if not user.is_active:
            raise CommandError(
                _("the user “%s” is not active, so a token would be refused") % options["user"]
            )
        # A token that could do nothing would be found out far from here.
        lacking = [NEEDS[s] for s in options["scopes"] if s in NEEDS and not user.has_perm(NEEDS[s])]
        if lacking:
            raise CommandError(
                _(
                    "the user “%(user)s” lacks the permission %(names)s, which these scopes need: grant it "
                    "first, or leave the scope out"
                )
                % {"user": options["user"], "names": ", ".join(lacking)}
            )
        expires = timezone.now() + timedelta(days=options["days"])
        token, secret = ApiToken.objects.issue(
            options["name"],
            user=user,
            scopes=options["scopes"],
            queues=options["queues"],
            expires_at=expires,
        )
        self.stderr.write(
            _("Token %(name)s of %(user)s, good until %(until)s UTC. This is the only time that it is shown:")
            % {"name": token.name, "user": options["user"], "until": f"{expires:%Y-%m-%d %H:%M}"}
        )
        self.stdout.write(secret)

    def _list(self, options: dict[str, Any]) -> None:
        now = timezone.now()
        for token in ApiToken.objects.select_related("user").order_by("-id"):
            state = "revoked" if token.revoked_at else "live"
            if state == "live" and token.expires_at and token.expires_at <= now:
                state = "expired"
            used = f"{token.last_used_at:%Y-%m-%d %H:%M}" if token.last_used_at else "never"
            until = f"{token.expires_at:%Y-%m-%d}" if token.expires_at else "-"
            self.stdout.write(
                f"{token.prefix}  {state:<8} {token.user.get_username():<16} {token.name:<20} "
                f"{','.join(token.scopes)}  queues {','.join(token.queues) or 'all'}  "
                f"until {until}  used {used}"
            )

    def _revoke(self, options: dict[str, Any]) -> None:
        if len(options["prefix"]) != 12:
            raise CommandError(_("give the first 12 characters of the token, as `token list` prints them"))
        ended = ApiToken.objects.filter(prefix=options["prefix"], revoked_at=None).update(
            revoked_at=timezone.now()
        )
        if not ended:
            raise CommandError(_("there is no live token %s") % options["prefix"])
        self.stdout.write(_("Revoked %s.") % ended)


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
