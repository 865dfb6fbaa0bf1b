"""The forms of mass actions: what to do and why, then how many, typed."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.actforms import ReasonForm
from jobs.models.plan import PlanAction

PICKED = 1000


class IdsField(forms.Field):
    """Jobs that were picked, as a form sends them: one value each."""

    widget = forms.MultipleHiddenInput

    def clean(self, value: Any) -> list[uuid.UUID]:
        try:
            found = list(dict.fromkeys(uuid.UUID(text) for text in value or []))
        except ValueError:
            raise ValidationError(_("This is no list of jobs; pick them anew.")) from None
        if len(found) > PICKED:
            raise ValidationError(_("At most %(n)s jobs are picked at a time.") % {"n": PICKED})
        return found


class PrepareForm(ReasonForm):
    """What is to be done to them, and why."""

    job = IdsField(required=False)
    action = forms.ChoiceField(label=gettext_lazy("What to do"), widget=forms.RadioSelect)
    field_order = ["job", "action", "reason"]

    def __init__(self, *arguments: Any, choices: Sequence[tuple[str, str]], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.fields["action"].choices = list(choices)  # type: ignore[attr-defined]

    def clean_action(self) -> PlanAction:
        return PlanAction(self.cleaned_data["action"])


class ExecuteForm(forms.Form):
    """How many, where the plan asks for it; whether that is right is judged by the operation."""

    typed = forms.IntegerField(
        label="",
        required=False,
        min_value=0,
        max_value=2**31,
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "inputmode": "numeric"}),
    )
