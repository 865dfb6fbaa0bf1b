"""What an app for one-time codes would show."""

from __future__ import annotations

import time
from datetime import timedelta

from django.utils import timezone
from django_otp.oath import TOTP
from django_otp.plugins.otp_totp.models import TOTPDevice


def code(secret: bytes, step: int = 0) -> str:
    """Return what the app shows now, or some steps of 30 seconds later."""
    totp = TOTP(secret)
    totp.time = time.time() + 30 * step
    return f"{totp.token():06d}"


def wrong(secret: bytes) -> str:
    """Return a code that is not right now, nor will be for a while."""
    near = {code(secret, step) for step in (-2, -1, 0, 1, 2)}
    return next(text for text in map("{:06d}".format, range(10)) if text not in near)


def no_wait() -> None:
    """Let the time pass that a wrong code costs."""
    past = timezone.now() - timedelta(hours=1)
    TOTPDevice.objects.update(throttling_failure_timestamp=past)
