"""Tokens of the API: 256 random bits, only their SHA-256 at rest, shown once."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class ApiTokenManager(models.Manager["ApiToken"]):
    """Issues and finds tokens."""

    def issue(
        self,
        name: str,
        *,
        user: Any,
        scopes: list[str],
        queues: list[str],
        expires_at: datetime | None = None,
    ) -> tuple[ApiToken, str]:
        """Store a new token and return it with its secret, which is never readable again."""
        secret = "ilk_" + secrets.token_urlsafe(32)
        token = self.create(
            name=name,
            user=user,
            prefix=secret[:12],
            digest=digest_of(secret),
            scopes=scopes,
            queues=queues,
            expires_at=expires_at,
        )
        return token, secret

    def find(self, secret: str) -> ApiToken | None:
        """Return the live token of `secret`; None when it is unknown, revoked or expired."""
        return self.find_by_digest(digest_of(secret))

    def find_by_digest(self, digest: str) -> ApiToken | None:
        """Return the live token of a digest: asked again by whoever has waited since he was let in."""
        try:  # `first` would have Django compile an order, every time
            return self._live().select_related("user").get(digest=digest)
        except self.model.DoesNotExist:
            return None

    def over(self, keys: Iterable[int]) -> set[int]:
        """Return those of these tokens that nobody may use any more: asked for all who wait at once."""
        if not (wanted := set(keys)):
            return wanted
        return wanted - set(self._live().filter(pk__in=wanted).values_list("pk", flat=True))

    def _live(self) -> models.QuerySet[ApiToken]:
        """Return the tokens that may be used now: not revoked, not expired, of somebody who is active."""
        lasting = models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now())
        return self.filter(lasting, revoked_at=None, user__is_active=True)


def digest_of(secret: str) -> str:
    """Return what is stored of a secret. It has 256 random bits, so a slow hash would add nothing."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


class ApiToken(models.Model):
    """A caller of the API: whose it is, what it may do (`scopes`) and where (`queues`, empty for all)."""

    SCOPES = ("jobs:read", "jobs:enqueue", "jobs:cancel", "worker", "cases:act", "ops")

    name = models.CharField(max_length=100)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="api_tokens")
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    queues = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[ApiTokenManager] = ApiTokenManager()

    class Meta:
        verbose_name = "API token"
        default_permissions = ("view",)
        permissions = (("manage_token", _("Can issue and revoke API tokens")),)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
