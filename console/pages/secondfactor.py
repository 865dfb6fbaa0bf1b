"""The own second factor: enrol an app that shows codes, confirm it with one, take it away again."""

from __future__ import annotations

from base64 import b32encode
from typing import Any

import segno
from django import forms
from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_otp.plugins.otp_totp.models import TOTPDevice

from console.pages.act import CODES, Sent
from console.pages.base import Page
from jobs.operations import actor, factors
from jobs.outcomes import Refused

SECRET = "second_factor_begun"  # noqa: S105  # the name under which a session keeps it until it is confirmed
BORDER = 4
"""Empty squares around a QR code, without which no camera finds it."""


class FactorForm(forms.Form):
    """Which of the three things is done."""

    do = forms.ChoiceField(choices=[(word, word) for word in ("begin", "confirm", "leave", "remove")])
    code = forms.CharField(required=False, max_length=factors.LONGEST)

    def lost_sight(self) -> bool:
        """Nothing that the form shows can move."""
        return False


class SecondFactorPage(Sent, Page):
    """One person's own; nobody sees another's."""

    http_method_names = ["get", "head", "post", "options"]
    template_name = "console/secondfactor.html"

    def page(self) -> dict[str, Any]:
        """Return the device, or what is needed to enrol one."""
        user = self.request.user
        device = TOTPDevice.objects.filter(user_id=user.pk, confirmed=True).first()
        key = self.request.session.get(SECRET) if device is None else None
        shown = {"title": gettext_lazy("Second factor"), "device": device}
        if key:
            new = factors.new_device(user, key)
            shown |= {"uri": new.config_url, "secret": _spelt(new.bin_key), "qr": _drawn(new.config_url)}
        return shown | {"asked": factors.missing(user, self.request.session)}

    def form(self) -> FactorForm:
        return FactorForm(self.request.POST)

    def act(self, data: dict[str, Any]) -> HttpResponseBase | None:
        """Begin, confirm, leave or remove; all but leaving ask a recent log-in."""
        session, do = self.request.session, data["do"]
        if do == "begin":
            actor.need_recent()
            session[SECRET] = factors.new_device(self.request.user).key
        elif do == "confirm":
            if not session.get(SECRET):
                return None
            factors.enrol(session[SECRET], data["code"], actor=self.request.user, session=session.session_key)
            factors.note(session)
            del session[SECRET]
            self.tell(
                _(
                    "Your second factor is enrolled. From now on the log-in asks for its code. "
                    "Your other sessions have ended."
                )
            )
        elif do == "remove":
            factors.remove(actor=self.request.user, session=session.session_key)
            session.pop(factors.KEY, None)
            self.tell(
                _(
                    "Your second factor is removed. The log-in asks for the password alone. "
                    "Your other sessions have ended."
                )
            )
        else:
            session.pop(SECRET, None)
        return None

    def again(self) -> HttpResponse:
        """Go on with what was asked for: nothing here is decided twice."""
        answer = self.post(self.request)
        assert isinstance(answer, HttpResponse)  # noqa: S101  # what a form of ours is answered with
        return answer

    def unread(self, form: FactorForm) -> HttpResponse:
        """Return the page: nothing that it offers was sent."""
        return self.whole({}, 400)

    def refuse(self, refused: Refused, form: FactorForm) -> HttpResponse:
        """Return the page as it is now, with the refusal."""
        return self.whole({"refusal": str(refused)}, CODES.get(refused.code, 409))

    def back(self) -> HttpResponseBase:
        """Lead to the page."""
        return HttpResponseRedirect(reverse("admin:second-factor"))


def _spelt(key: bytes) -> str:
    """Return a secret as people type it: in groups of four."""
    text = b32encode(key).decode().rstrip("=")
    return " ".join(text[n : n + 4] for n in range(0, len(text), 4))


def _drawn(text: str) -> dict[str, Any]:
    """Return a QR code as the path of an SVG and the length of its side."""
    rows = list(segno.make(text, error="m", micro=False).matrix)
    dark = (
        f"M{x + BORDER} {y + BORDER}h1v1h-1z"
        for y, row in enumerate(rows)
        for x, square in enumerate(row)
        if square
    )
    return {"path": "".join(dark), "side": len(rows) + 2 * BORDER}
