"""Who calls, and what that caller may do: sessions with CSRF, and bearer tokens.

A token may do what its scopes say *and* its owner may: who is demoted takes his tokens along.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from jobs import audit
from jobs.api.problems import Problem
from jobs.models import ApiToken, Job
from jobs.models.audit import Source
from jobs.operations import factors, proof
from jobs.operations.actor import VIEW_PAYLOAD
from jobs.permissions import NEEDS

log = logging.getLogger("interlock.api")

USED_GRAIN = timedelta(minutes=1)


class BearerToken(BaseAuthentication):
    """Reads `Authorization: Bearer …`; another scheme, or none, is left to the session."""

    def authenticate(self, request: Request) -> tuple[Any, ApiToken] | None:
        scheme, _space, secret = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = ApiToken.objects.find(secret.strip())
        if token is None:
            raise AuthenticationFailed(_("The token is unknown, has expired or was revoked."))
        note_use(token)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="interlock"'


def note_use(token: ApiToken) -> None:
    """Keep when a token was last used, to the minute; a database that cannot is no reason to refuse it."""
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at >= USED_GRAIN:
        try:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        except DatabaseError as error:
            log.warning(
                "last use of a token not kept", extra={"token": token.prefix, "cause": str(error)[:200]}
            )


@dataclass(frozen=True, slots=True)
class Caller:
    """One authenticated caller, whichever way it came in."""

    user: Any
    token: ApiToken | None
    proved_at: datetime | None = None
    """When the person last proved who he is."""

    @classmethod
    def of(cls, request: Request) -> Caller:
        if isinstance(request.auth, ApiToken):
            # A token proves nothing of its own; its person does, by logging in. A service never does.
            return cls(request.user, request.auth, request.auth.user.last_login)
        return cls(request.user, None, proof.of(getattr(request, "session", None)))

    @property
    def actor(self) -> str:
        """The name that goes into feeds and audit."""
        name = str(self.user.get_username())
        return (f"{name} by token {self.token.name}" if self.token else name)[:150]

    def door(self, **known: Any) -> AbstractContextManager[None]:
        """Tell the operations used inside who came in, and with what; `known` as for audit.through."""
        token = self.token.name if self.token else ""
        return audit.through(
            Source.API, user=self.user.get_username(), token=token, proved_at=self.proved_at, **known
        )

    @property
    def namespace(self) -> str:
        """Where this caller's Idempotency-Keys live: two tokens never meet by chance."""
        return f"idempotency:token-{self.token.pk}:" if self.token else f"idempotency:user-{self.user.pk}:"

    @property
    def reveals(self) -> bool:
        """Whether redacted payloads are shown; a token never reveals."""
        return self.token is None and bool(self.user.has_perm(VIEW_PAYLOAD))

    def lacks(self, scope: str) -> str:
        """Return what is missing for `scope`, or nothing."""
        if self.token is not None and scope not in self.token.scopes:
            return _("The token lacks the scope %s.") % scope
        if not self.user.has_perm(NEEDS[scope]):
            return _("The user lacks the permission %s.") % NEEDS[scope]
        return ""

    def may_use(self, queue: str) -> bool:
        """Return whether `queue` is within the token's limit; a session has none."""
        return self.token is None or not self.token.queues or queue in self.token.queues

    def jobs(self) -> Any:
        """Return the jobs that exist as far as this caller is concerned."""
        limited = self.token is not None and self.token.queues
        return (
            Job.objects.filter(queue__in=self.token.queues) if limited and self.token else Job.objects.all()
        )


class Scoped(BasePermission):
    """Permits what the view names in `scopes` for the method; a view that names nothing is closed."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not request.user.is_authenticated:
            return False
        method = "GET" if request.method == "HEAD" else request.method
        scope = getattr(view, "scopes", {}).get(method)
        if scope is None:
            return method not in [m.upper() for m in view.http_method_names if hasattr(view, m)]
        caller = Caller.of(request)
        if caller.token is None and factors.missing(request.user, getattr(request, "session", None)):
            raise Problem("forbidden", _("This session lacks the second factor: enrol one in the console."))
        missing = [caller.lacks(one) for one in ((scope,) if isinstance(scope, str) else scope)]
        if all(missing):
            raise Problem("forbidden", " ".join(missing))
        return True
