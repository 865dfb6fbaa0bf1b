"""How a template says a status, a time, an id, a reason. Nothing here reads the database."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from django import template
from django.template.base import Node, Parser, Token
from django.template.context import Context
from django.templatetags.i18n import TranslateNode, do_translate
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from console import addresses, casefile, wording
from jobs import money as amounts
from jobs.explain import Explanation

register = template.Library()

COLOURS = {
    "running": "run",
    "executing": "run",
    "uncertain": "unk",
    "unknown": "unk",
    "succeeded": "ok",
    "committed": "ok",
    "failed": "bad",
    "lost": "warn",
    "late": "warn",
    "silent": "warn",
    "stopping": "warn",
    "fenced": "bad",
    "beating": "ok",
}
CASES = {
    "unknown": ("unknown", "unk"),
    "conflict": ("conflict", "warn"),
    "approval": ("approval", "run"),
    "contradiction": ("contradiction", "bad"),
}
EFFECT_ICONS = {"committed": "committed"}
ATTEMPT_ICONS = {"committed": "succeeded"}
NEAR = 600
"""Seconds before its SLA from which a case is marked."""


class Said(Node):
    """A text of the catalogue, looked up and escaped once for each language: a list says it in each row."""

    def __init__(self, node: TranslateNode) -> None:
        self.node = node
        self.texts: dict[str | None, str] = {}

    def render(self, context: Context) -> str:
        language = get_language()
        text = self.texts.get(language)
        if text is None:
            text = self.texts[language] = self.node.render(context)
        return text


@register.tag
def translate(parser: Parser, token: Token) -> Node:
    """Do as Django's tag does; a text that is always the same is remembered."""
    node = do_translate(parser, token)
    given = [node.filter_expression, *filter(None, [node.message_context])]
    constant = all(
        not part.filters and isinstance(getattr(part.var, "literal", part.var), str) for part in given
    )
    return Said(node) if constant and not node.asvar else node


@register.simple_tag
def to(name: str, thing: Any) -> str:
    """Return the address of the page of one thing, by its id."""
    return addresses.address_of(name, thing)


@register.filter
def clip(text: Any, most: int) -> str:
    """Shorten a text."""
    return wording.clip(str(text), most)


@register.simple_tag
def icon(name: str, more: str = "") -> SafeString:
    """Draw a symbol of the page's sprite; it is never alone, so it has no name of its own."""
    return _icon(name, more)


@lru_cache(maxsize=512)
def _icon(name: str, more: str) -> SafeString:
    # A list draws the same ones in each of its rows.
    return format_html('<svg class="i {}" aria-hidden="true"><use href="#i-{}"/></svg>', more, name)


@register.simple_tag
def status(word: str, family: str = "job", pill: bool = False) -> SafeString:
    """Say a status: its family's shape, its word, its colour last. `family`: job, attempt or effect."""
    return _status(str(word), family, pill)


@wording.remembered
def _status(word: str, family: str, pill: bool) -> SafeString:
    icons = EFFECT_ICONS if family == "effect" else ATTEMPT_ICONS if family == "attempt" else {}
    colour = COLOURS.get(word, "")
    shown = wording.words().get(word, word)
    return format_html(
        '<span class="st{}{}"{}>{}{}</span>',
        f" st-{colour}" if colour else "",
        " pill" if pill else "",
        # Commands, filters in the address and the API say the code in every language.
        format_html(' title="{}"', word) if shown != word else "",
        icon(icons.get(word, word)),
        format_html("{} <code>{}</code>", shown, word) if pill and shown != word else shown,
    )


@register.simple_tag
def case_kind(kind: str, pill: bool = False) -> SafeString:
    """Say what kind of case it is: its own shape, its word, its colour last."""
    return _case_kind(str(kind), pill)


@wording.remembered
def _case_kind(kind: str, pill: bool) -> SafeString:
    drawn, colour = CASES.get(kind, ("page", ""))
    word = wording.cases().get(kind, kind)
    return format_html(
        '<span class="st{}{}">{}{}</span>',
        f" st-{colour}" if colour else "",
        " pill" if pill else "",
        icon(drawn),
        word[:1].upper() + word[1:] if pill else word,
    )


HEARD = {
    "found": ("committed", "ok"),
    "committed": ("committed", "ok"),
    "not_found": ("absent", ""),
    "absent": ("absent", ""),
    "unknown": ("unknown", "unk"),
    "found_other": ("conflict", "warn"),
    "no_answer": ("warn", "warn"),
    "sender_gone": ("fence", "ok"),
}


@register.simple_tag
@wording.remembered
def heard(outcome: str) -> SafeString:
    """Say what a piece of evidence says."""
    words = {
        "found": _("found"),
        "committed": _("it happened"),
        "not_found": _("not found"),
        "absent": _("it did not happen"),
        "unknown": _("no definite answer"),
        "found_other": _("found, with another payload"),
        "no_answer": _("no answer"),
        "sender_gone": _("the sender is gone"),
    }
    # A person's evidence is a ruling.
    said = words.get(outcome) or wording.verdicts().get(outcome, outcome.replace("_", " "))
    drawn, colour = HEARD.get(outcome, ("user", ""))
    return format_html(
        '<span class="st{}">{}{}</span>',
        f" st-{colour}" if colour else "",
        icon(drawn),
        said,
    )


@register.filter
def evidence_class(case: Any, inquiry: str) -> str:
    """Say in a few words what there is to go by in a case."""
    return casefile.evidence_class(case, inquiry)


@register.filter
def lookup(values: dict[str, str], name: str) -> str:
    """Return one value of a dictionary; nothing where it has none."""
    return values.get(name, "")


@register.filter
@wording.remembered
def source_word(value: str) -> str:
    """Say where a piece of evidence comes from."""
    words = {
        "inquiry": _("inquiry"),
        "report": _("the sender's report"),
        "person": _("a person"),
        "proof": _("a proof"),
    }
    return words.get(value, value)


@register.simple_tag
def money(amount: Any, currency: str = "") -> str:
    """Say an amount with its currency."""
    return amounts.money(amount, currency)


@register.simple_tag(takes_context=True)
def sla(context: dict[str, Any], due: datetime | None) -> SafeString:
    """Say how long is left until a case is due, or by how long it is over: in shape and word."""
    if due is None:
        return format_html('<span class="quiet">{}</span>', _("none set"))
    seconds = (due - context["now"]).total_seconds()
    if seconds <= 0:
        over = _time(context, due, wording.span(float(int(-seconds))), "span")
        return format_html(
            '<span class="st st-bad bad strong">{}<span>{}</span></span>',
            icon("warn"),
            format_html(_("over by {}"), over),
        )
    left = _time(context, due, wording.span(float(int(seconds))), "until")
    if seconds <= NEAR:
        return format_html(
            '<span class="st st-warn warn">{}<span>{}</span></span>',
            icon("clock"),
            format_html(_("{} left"), left),
        )
    return format_html(_("{} left"), left)


@register.simple_tag
@wording.remembered
def worker_state(state: str) -> SafeString:
    """Say how a worker does."""
    words = {
        "beating": _("beating"),
        "late": _("late"),
        "silent": _("silent"),
        "stopping": _("stopping"),
        "stopped": _("stopped"),
        "fenced": _("fenced"),
    }
    icons = {
        "late": "warn",
        "silent": "lost",
        "stopping": "released",
        "stopped": "blocked",
        "fenced": "fence",
    }
    colour = COLOURS.get(state, "")
    drawn = icon(icons.get(state, state))
    return format_html(
        '<span class="st{}">{}{}</span>', f" st-{colour}" if colour else "", drawn, words.get(state, state)
    )


@register.simple_tag
def status_icon(word: str) -> SafeString:
    """Draw a status where its word stands beside."""
    colour = COLOURS.get(word, "")
    return icon(word, f"st-{colour} c" if colour else "")


@register.simple_tag(takes_context=True)
def age(context: dict[str, Any], moment: datetime | None, style: str = "") -> SafeString:
    """Say how long ago an instant was; the browser counts on from there. `style` "span": in two units."""
    if moment is None:
        return SafeString("")
    seconds = (context["now"] - moment).total_seconds()
    text = wording.span(float(int(seconds))) if style == "span" else wording.age(seconds)
    return _time(context, moment, text, "span" if style == "span" else "age")


@register.simple_tag(takes_context=True)
def ago(context: dict[str, Any], moment: datetime | None) -> SafeString:
    """Say that an instant was so long ago."""
    if moment is None:
        return SafeString("")
    return format_html(_("{} ago"), age(context, moment))


@register.simple_tag(takes_context=True)
def updated(context: dict[str, Any]) -> SafeString:
    """Say when the page was last read; the browser moves it on with each refresh."""
    iso = context["now"].astimezone(UTC).isoformat()
    clock = format_html('<time id="live-at" datetime="{}" data-count="age">{}</time>', iso, wording.age(0))
    return format_html(_("Updated {} ago"), clock)


@register.simple_tag(takes_context=True)
def until(context: dict[str, Any], moment: datetime | None) -> SafeString:
    """Say how far an instant lies ahead, or that it has passed."""
    if moment is None:
        return SafeString("")
    seconds = (moment - context["now"]).total_seconds()
    if seconds <= 0:
        return format_html(_("{} ago"), age(context, moment))
    return format_html(_("in {}"), _time(context, moment, wording.span(float(int(seconds))), "until"))


@register.simple_tag(takes_context=True)
def at(context: dict[str, Any], moment: datetime | None) -> SafeString:
    """Say an instant as a time of day, in UTC; the whole of it on hover."""
    if moment is None:
        return SafeString("")
    return _time(context, moment, wording.clock(moment, context["now"]), "")


@register.simple_tag(takes_context=True)
def utc(context: dict[str, Any], moment: datetime | None) -> SafeString:
    """Say an instant as a time of day in UTC, and in the reader's own zone: for a fact, not for each row."""
    if moment is None:
        return SafeString("")
    return _time(context, moment, wording.utc(moment, context["now"], context.get("zone")), "")


@register.simple_tag(takes_context=True)
def stamp(context: dict[str, Any], moment: datetime | None) -> SafeString:
    """Say an instant in full: in UTC, and in the reader's own time zone where he has chosen one."""
    if moment is None:
        return SafeString("")
    return _time(context, moment, wording.both(moment, context.get("zone")), "")


def _time(context: dict[str, Any], moment: datetime, text: str, counting: str) -> SafeString:
    counted = f' data-count="{counting}"' if counting else ""
    return SafeString(f"<time{_instant(moment, context.get('zone'))}{counted}>{escape(text)}</time>")


@lru_cache(maxsize=4096)
def _instant(moment: datetime, zone: str | None) -> str:
    # A row says one instant twice, and the next refresh says nearly all of them again.
    iso = moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00")
    return format_html(' datetime="{}Z" title="{}"', iso, wording.both(moment, zone))


@register.simple_tag(takes_context=True)
def why(
    context: dict[str, Any], explanation: Explanation, filter_url: str = "", to_case: bool = False
) -> str:
    """Say in one sentence why a job is where it is.

    In a row an error code leads to the jobs that met it (`filter_url` is the beginning of that address), and
    an effect to its case, for who may see cases.
    """
    text, params = wording.why(explanation, context["now"]), explanation.params
    if filter_url and params.get("error_code"):
        return _linked(text, params["error_code"], filter_url + quote(params["error_code"], safe=""))
    if to_case and "case_id" in params:
        return _linked(text, params["effect"], addresses.address_of("admin:case", params["case_id"]))
    return text


def _linked(text: str, part: str, url: str) -> str:
    before, found, after = text.partition(part)
    return format_html('{}<a class="cell" href="{}">{}</a>{}', before, url, found, after) if found else text


@register.simple_tag
def took(job: Any) -> str:
    """Say how long a job's last attempt took."""
    return _("Took %(t)s.") % {"t": wording.span(job.finished_at - job.started_at)}


@register.simple_tag
def live(region: str, seconds: int = 3, address: str = "") -> SafeString:
    """Make the element one that refreshes itself: put it into a div's tag."""
    return format_html(
        'id="{}" class="live stack" data-live hx-get="{}" hx-trigger="every {}s, again" hx-target="this"'
        ' hx-swap="innerHTML" hx-disinherit="*"',
        region,
        address,
        seconds,
    )


@register.filter
def short_id(value: object) -> str:
    """Shorten an id."""
    return wording.short_id(value)


@register.filter
def short_worker(value: str | None) -> str:
    """Shorten a worker's id."""
    return wording.short_worker(value or "")


@register.filter
def span(value: Any) -> str:
    """Say a length of time, or the time between (start, end)."""
    return wording.span(value)


@register.filter
def minus(end: datetime | None, start: datetime | None) -> Any:
    """Return the time between two instants."""
    return end - start if end is not None and start is not None else None


@register.filter
def thousands(value: int | None) -> str:
    """Write a number with its thousands apart."""
    return "" if value is None else f"{value:,}"


@register.filter
def status_word(value: str) -> str:
    """Say a status in the reader's language."""
    return wording.words().get(value, value)


@register.filter
def status_class(value: str) -> str:
    """Return the class that gives a status its colour, to follow another class."""
    return f" st-{COLOURS[value]}" if value in COLOURS else ""


@register.filter
def verdict_word(value: str) -> str:
    """Say a verdict in the reader's language."""
    return wording.verdicts().get(value, value)


@register.filter
def is_link(value: str) -> bool:
    """Tell an address of the web from a sentence; any other scheme stays text."""
    return value.startswith(("https://", "http://"))
