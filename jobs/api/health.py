"""What load balancers and monitoring ask for: addresses without a session, a form or a secret."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from jobs import health
from jobs import metrics as figures
from jobs.api.auth import Caller, note_use
from jobs.health import Level
from jobs.models import ApiToken

FORWARDED = ("HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_VIA")


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process serves requests; asks nobody else."""
    return _text("ok\n")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer whether requests can be served: 200 with the database reached and all migrations applied."""
    found = [health.database(DEFAULT_DB_ALIAS)]
    if found[0].level == Level.OK:
        found.append(health.migrations(DEFAULT_DB_ALIAS))
    ready = all(finding.level == Level.OK for finding in found)
    lines = [f"{finding.part}: {finding.level.word}" for finding in found]
    return _text("\n".join([*lines, "ready" if ready else "not ready", ""]), 200 if ready else 503)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with every metric, to this machine itself or to a token of scope `ops`."""
    try:
        if refusal := _refusal(request):
            return refusal
        return HttpResponse(figures.exposition(), content_type=figures.CONTENT_TYPE)
    except Error:
        connections[DEFAULT_DB_ALIAS].close()
        return _text(_("The database cannot be reached.") + "\n", 503)


def is_loopback(request: HttpRequest) -> bool:
    """Return whether a request comes from this very machine, and not through a proxy that runs on it."""
    if settings.BEHIND_PROXY or any(name in request.META for name in FORWARDED):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def _refusal(request: HttpRequest) -> HttpResponse | None:
    scheme, _space, secret = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":
        if is_loopback(request):
            return None
        answer = _text(_("From another machine this needs a token of scope ops.") + "\n", 401)
        answer["WWW-Authenticate"] = 'Bearer realm="interlock"'
        return answer
    token = ApiToken.objects.find(secret.strip())
    if token is None:
        answer = _text(_("The token is unknown, has expired or was revoked.") + "\n", 401)
        answer["WWW-Authenticate"] = 'Bearer realm="interlock"'
        return answer
    note_use(token)
    missing = Caller(token.user, token).lacks("ops")
    if token.queues:
        missing = _("A token that is limited to queues has no part in the whole cluster.")
    return _text(missing + "\n", 403) if missing else None


def _text(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(text, content_type="text/plain; charset=utf-8", status=status)
