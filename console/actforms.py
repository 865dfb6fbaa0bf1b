"""The forms of the operations on jobs, queues, workers and the scheduler: why, and what the person saw.

Whether it may be done, and by whom, is judged by jobs.operations alone: a form only reads what was typed.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.forms import JsonField, UtcField
from jobs.operations.cluster import HIGHEST_FLOOR

REASON = 1000
EDITED = 100_000
"""Characters of an input that a form offers for editing; what is longer is typed elsewhere."""
LENGTHS = {"15": 15, "60": 60, "240": 240, "480": 480, "1440": 1440}
"""How long a queue can be paused with one choice, in minutes."""


class ReasonForm(forms.Form):
    """Why. Every operation asks it, and none suggests an answer."""

    use_required_attribute = True
    what_was_seen: ClassVar[tuple[str, ...]] = ()
    """Fields that say what the person saw; without them nothing is done."""
    reason = forms.CharField(
        label=gettext_lazy("Why, in your own words"),
        help_text=gettext_lazy("Shown to everyone on shift and kept in the audit."),
        max_length=REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def lost_sight(self) -> bool:
        """Whether it does not say what was seen: it is none of ours, or was cut."""
        return bool(set(self.what_was_seen) & set(self.errors))


class JobForm(ReasonForm):
    """Why, and the job's version that was seen."""

    what_was_seen = ("version",)
    version = forms.IntegerField(min_value=0, max_value=2**62, widget=forms.HiddenInput)


class RetryForm(JobForm):
    """Also until when, where the deadline has passed or is about to."""

    deadline_at = UtcField(
        label=gettext_lazy("New deadline, UTC"),
        help_text=gettext_lazy("Empty keeps the deadline that it has."),
    )
    field_order = ["version", "deadline_at", "reason"]


class ReviseForm(JobForm):
    """Also the whole new input, and what becomes of the effects that took place."""

    arguments = JsonField(
        label=gettext_lazy("New arguments"), help_text=gettext_lazy("A JSON object: the whole new input.")
    )
    effects = forms.ChoiceField(
        label=gettext_lazy("Effects that took place"),
        choices=[
            ("", gettext_lazy("Choose what becomes of them")),
            ("keep_effects", gettext_lazy("Keep them: they answer from their record")),
            ("repeat_effects", gettext_lazy("Repeat them: they are sent again")),
        ],
    )
    field_order = ["version", "arguments", "effects", "reason"]

    def __init__(self, *arguments: Any, committed: bool, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.fields["arguments"].widget.attrs |= {"rows": 12, "class": "mono", "spellcheck": "false"}
        if not committed:
            del self.fields["effects"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if "arguments" in data and not isinstance(data["arguments"], dict):
            self.add_error("arguments", _("Arguments are a JSON object."))
        return data


class PauseForm(ReasonForm):
    """Also which queue, which pause was seen, if any, and until when."""

    what_was_seen = ("queue", "seen")
    queue = forms.CharField(max_length=100, widget=forms.HiddenInput)
    seen = forms.CharField(max_length=20, required=False, widget=forms.HiddenInput)
    length = forms.ChoiceField(
        label=gettext_lazy("Until when"),
        choices=[
            ("", gettext_lazy("Choose how long")),
            ("15", gettext_lazy("for 15 minutes")),
            ("60", gettext_lazy("for 1 hour")),
            ("240", gettext_lazy("for 4 hours")),
            ("480", gettext_lazy("for 8 hours")),
            ("1440", gettext_lazy("for a day")),
            ("until", gettext_lazy("until the time below")),
            ("open", gettext_lazy("until a person resumes it")),
        ],
    )
    until = UtcField(label=gettext_lazy("That time, UTC"))
    field_order = ["queue", "length", "until", "reason"]

    def end(self, now: datetime) -> datetime | None:
        """Return when the pause ends; None where only a person ends it."""
        chosen = self.cleaned_data["length"]
        if chosen in LENGTHS:
            return now + timedelta(minutes=LENGTHS[chosen])
        found: datetime | None = self.cleaned_data["until"] if chosen == "until" else None
        return found

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("length") == "until" and "until" in data and data["until"] is None:
            self.add_error("until", _("Say the time until which it is paused."))
        return data


class QueueForm(ReasonForm):
    """Also which queue, and which pause was seen."""

    what_was_seen = ("queue", "seen")
    queue = forms.CharField(max_length=100, widget=forms.HiddenInput)
    seen = forms.CharField(max_length=20, widget=forms.HiddenInput)


class OpenForm(ReasonForm):
    """Also when and by whom claims were seen closed."""

    what_was_seen = ("seen",)
    seen = forms.CharField(max_length=20, widget=forms.HiddenInput)


class WorkerForm(ReasonForm):
    """Also which worker."""

    what_was_seen = ("worker",)
    worker = forms.CharField(max_length=200, widget=forms.HiddenInput)


class ConfirmForm(ReasonForm):
    """Also the epoch that was seen, typed once more with the name of this installation."""

    what_was_seen = ("epoch",)
    epoch = forms.IntegerField(min_value=1, max_value=2**62, widget=forms.HiddenInput)
    typed = forms.CharField(
        label="", max_length=80, widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off"})
    )
    field_order = ["epoch", "reason", "typed"]

    def __init__(self, *arguments: Any, place: str, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.place = place

    @property
    def phrase(self) -> str:
        """What has to be typed."""
        return f"raise {self['epoch'].value()} in {self.place}"

    def clean_typed(self) -> str:
        typed: str = " ".join(self.cleaned_data["typed"].split())
        if typed != self.phrase:
            raise ValidationError(
                _("Nothing is done before it reads exactly “%(words)s”.") % {"words": self.phrase}
            )
        return typed


class RaiseForm(ConfirmForm):
    """Also whether claims are closed with it, and above which other epoch it goes."""

    close_claims = forms.BooleanField(
        label=gettext_lazy("Close claims as well"),
        help_text=gettext_lazy("Nothing new starts until a person opens them."),
        required=False,
    )
    floor = forms.IntegerField(
        label=gettext_lazy("Go above this epoch too"),
        help_text=gettext_lazy(
            "Only after a failover or a restore: the highest epoch that anybody has seen."
        ),
        required=False,
        min_value=0,
        max_value=HIGHEST_FLOOR,
    )
    field_order = ["epoch", "reason", "close_claims", "floor", "typed"]


def indented(text: str) -> str:
    """Return JSON as a person edits it."""
    return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
