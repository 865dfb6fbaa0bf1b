"""The forms of a case. Each carries the version and the snapshot that the person saw; rules are not here.

What may be ruled, when and by whom is judged by jobs.operations alone: a form only reads what was typed.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import wording
from jobs.api import strictjson
from jobs.models.case import VERDICTS, CaseKind, Verdict
from jobs.operations.casework import LONGEST_WHY
from jobs.operations.rulings import LONGEST_REFERENCE, REASON_CODES

WORDS = 1000
JSON_CHARACTERS = 200_000
DEPTH = 32
PARKING = {"30": timedelta(minutes=30), "120": timedelta(hours=2), "480": timedelta(hours=8)}
"""How long a case can be put aside, in minutes; then it comes back by itself."""
CONFIRMED = (Verdict.DID_NOT_HAPPEN, Verdict.ABANDON)
"""Verdicts that are asked for twice: one permits a second sending, the other gives the job up."""


def case_id(text: str) -> uuid.UUID | None:
    """Return the id that an address names, or None where it is none."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


class JsonField(forms.CharField):
    """JSON as it is typed; cleans to Python values, an empty field to None."""

    widget = forms.Textarea

    def __init__(self, **more: Any) -> None:
        super().__init__(required=False, max_length=JSON_CHARACTERS, **more)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            return strictjson.read(text.encode(), depth=DEPTH)
        except strictjson.NotStrict as error:
            # Of the document as a whole there is no place to name.
            why = str(error) if error.pointer else error.problem
        except (ValueError, UnicodeError) as error:
            why = str(error)
        raise ValidationError(_("This cannot be read: %(why)s") % {"why": why})


class UtcField(forms.DateTimeField):
    """An instant as the browser's own picker sends it, read as UTC whatever the person's zone is."""

    def __init__(self, **more: Any) -> None:
        widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
        super().__init__(
            required=False, widget=widget, input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"], **more
        )

    def clean(self, value: Any) -> datetime | None:
        found = super().clean(value)
        return found.replace(tzinfo=UTC) if found is not None else None


class SeenForm(forms.Form):
    """A form that says what the person saw when it was shown."""

    use_required_attribute = True
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    snapshot = forms.CharField(max_length=64, min_length=64, widget=forms.HiddenInput)

    def lost_sight(self) -> bool:
        """Whether it does not say what was seen: it is none of ours, or was cut."""
        return bool({"version", "snapshot"} & set(self.errors))


def _words(label: Any, **more: Any) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 3})
    return forms.CharField(label=label, max_length=WORDS, widget=area, **more)


class RulingForm(SeenForm):
    """One verdict of the case's closed list, with why."""

    verdict = forms.ChoiceField(label=gettext_lazy("Ruling"))
    reference = forms.CharField(
        label=gettext_lazy("Provider reference"), max_length=LONGEST_REFERENCE, required=False
    )
    response = JsonField(label=gettext_lazy("Response"))
    compensate = forms.BooleanField(
        label=gettext_lazy("It must be made good: start the compensation"), required=False
    )
    attested = forms.BooleanField(label=gettext_lazy("I vouch that the sender is dead"), required=False)
    arguments = JsonField(label=gettext_lazy("New arguments"))
    effects = forms.ChoiceField(
        label=gettext_lazy("Effects that took place"),
        required=False,
        choices=[
            ("", gettext_lazy("There are none")),
            ("keep_effects", gettext_lazy("Keep them")),
            ("repeat_effects", gettext_lazy("Repeat them")),
        ],
    )
    reason_code = forms.ChoiceField(label=gettext_lazy("Reason"))
    reason = _words(gettext_lazy("In your own words"))

    def __init__(self, case_kind: str, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.verdicts = VERDICTS[CaseKind(case_kind)]
        words = wording.verdicts()
        chosen: Any = self.fields["verdict"]
        chosen.choices = [(v.value, words[v]) for v in self.verdicts]
        chosen.error_messages["required"] = _("Choose what is true.")
        codes: Any = self.fields["reason_code"]
        codes.choices = [("", _("Choose a reason")), *self._codes()]
        for name, verdict in BELONGS.items():
            if verdict not in self.verdicts:
                del self.fields[name]

    def _codes(self) -> list[tuple[str, Any]]:
        """Return the reasons by verdict; what goes with each of them stands last."""
        words, names = wording.reason_codes(), wording.verdicts()
        common = set.intersection(*(set(REASON_CODES[v]) for v in self.verdicts))
        if len(self.verdicts) == 1:
            common = set()
        groups: list[tuple[str, Any]] = [
            (names[v], [(code, words.get(code, code)) for code in REASON_CODES[v] if code not in common])
            for v in self.verdicts
        ]
        if len(groups) == 1:
            found: list[tuple[str, Any]] = groups[0][1]
            return found
        return [*groups, *((code, words.get(code, code)) for code in sorted(common))]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("arguments") is not None and not isinstance(data["arguments"], dict):
            self.add_error("arguments", _("Arguments are a JSON object."))
        return data


BELONGS = {
    "reference": Verdict.HAPPENED,
    "response": Verdict.HAPPENED,
    "compensate": Verdict.HAPPENED,
    "attested": Verdict.DID_NOT_HAPPEN,
    "arguments": Verdict.REVISE,
    "effects": Verdict.REVISE,
}
"""Fields that go with one verdict only: a case that does not offer it does not show them."""


class BesideForm(SeenForm):
    """What is no ruling rests on the version alone: a list knows it, and has looked at no evidence."""

    snapshot = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)


class AnswerForm(SeenForm):
    """A second person's word on what the first one asked for."""

    reason = _words(gettext_lazy("In your own words"))


class CommentForm(BesideForm):
    """Something to write beside the case."""

    text = forms.CharField(
        label=gettext_lazy("Comment"), max_length=2000, widget=forms.Textarea(attrs={"rows": 2})
    )


class ParkForm(BesideForm):
    """How long to put the case aside; nothing brings it back."""

    minutes = forms.ChoiceField(
        label=gettext_lazy("Park for"),
        required=False,
        initial="30",
        choices=[
            ("30", gettext_lazy("30 minutes")),
            ("120", gettext_lazy("2 hours")),
            ("480", gettext_lazy("8 hours")),
            ("until", gettext_lazy("until the time below")),
            ("", gettext_lazy("bring it back now")),
        ],
    )
    until = UtcField(label=gettext_lazy("That time, UTC"))
    why = forms.CharField(label=gettext_lazy("Why, if you like"), max_length=LONGEST_WHY, required=False)

    def end(self, now: datetime) -> datetime | None:
        """Return until when it is parked; None where it comes back."""
        chosen = self.cleaned_data["minutes"]
        if chosen in PARKING:
            return now + PARKING[chosen]
        found: datetime | None = self.cleaned_data["until"] if chosen == "until" else None
        return found

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("minutes") == "until" and "until" in data and data["until"] is None:
            self.add_error("until", _("Say the time until which it is parked."))
        return data
