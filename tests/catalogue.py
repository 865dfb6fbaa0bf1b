"""Reads a message catalogue as it is written, and what of the sources belongs into it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
COMPILED = WRITTEN.with_suffix(".mo")


@dataclass
class Message:
    """One entry: its English, and its translation, one text for each plural form."""

    context: str = ""
    english: str = ""
    plural: str = ""
    translated: list[str] = field(default_factory=list)
    fuzzy: bool = False

    @property
    def key(self) -> str:
        """The English with its context, as gettext keeps it."""
        return f"{self.context}\x04{self.english}" if self.context else self.english


def read(path: Path = WRITTEN) -> list[Message]:
    """Return the entries, the head first. Obsolete ones are left out, as they are by compilers."""
    return [_entry(block) for block in path.read_text("utf-8").split("\n\n") if "\nmsgid " in f"\n{block}"]


def _entry(block: str) -> Message:
    message, kind = Message(), ""
    texts: dict[str, str] = {}
    for line in block.splitlines():
        if line.startswith("#"):
            message.fuzzy |= line.startswith("#,") and "fuzzy" in line
            continue
        if not line.startswith('"'):
            kind, _, line = line.partition(" ")
        texts[kind] = texts.get(kind, "") + ast.literal_eval(line)
    message.context, message.english = texts.get("msgctxt", ""), texts["msgid"]
    message.plural = texts.get("msgid_plural", "")
    message.translated = [text for kind, text in texts.items() if kind.startswith("msgstr")]
    return message


SAID = {"title", "alt", "aria-label", "aria-description", "placeholder", "data-label"}
"""The attributes that are read or seen."""
CODE = {"script", "style", "code", "pre"}
KEY = ("class", "key")
"""What is printed on a key."""
TRANSLATED = re.compile(
    r"{% comment %}.*?{% endcomment %}|{% blocktranslate\b.*?{% endblocktranslate %}", re.DOTALL
)
TAGS = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}", re.DOTALL)
BLOCKS = re.compile(r"{% block (?:bodyclass|hero_class) %}\w*{% endblock %}")


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.inside, self.key = 0, False
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside += tag in CODE
        self.key = KEY in attrs
        self.found += [value for name, value in attrs if name in SAID and value]

    def handle_endtag(self, tag: str) -> None:
        self.inside -= tag in CODE
        self.key = False

    def handle_data(self, data: str) -> None:
        if not self.inside and not self.key:
            self.found.append(data)


def words_of(template: str) -> list[str]:
    """Return the words that a template says itself: in its text and in what of its attributes is read."""
    reader = _Text()
    reader.feed(TAGS.sub(" ", TRANSLATED.sub(" ", BLOCKS.sub(" ", template))))
    return [word for text in reader.found for word in re.findall(r"[^\W\d_]+", text)]


CALL = re.compile(r"\b(n?p?)gettext\((.*?)\)(?= [BSX ]|$)", re.DOTALL)
LITERAL = re.compile(r"""u?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


def keys_of(template: str) -> Iterator[str]:
    """Yield the keys of what a template translates, found by what makemessages finds them by."""
    for form, inner in CALL.findall(templatize(template)):
        texts = [ast.literal_eval(text) for text in LITERAL.findall(inner)]
        yield "\x04".join(texts[: 2 if "p" in form else 1])


IN_CONTEXT = {"pgettext", "pgettext_lazy"}
MARKS = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy"} | IN_CONTEXT
"""What a text goes through to be in the catalogue."""
SENTENCE = re.compile(r"[A-Z][\w’',:;-]*( [\w’',:;-]+)+|[a-z]+( [a-z,]+){2,}")
"""What reads like a sentence, or like three words of one."""
NOT_SHOWN = ("Error", "Exception", "debug", "info", "warning", "error", "log", "DeprecationWarning")


def sentences_of(source: str) -> Iterator[str]:
    """Yield the texts of a module that read like sentences, unmarked, but for those of errors and logs."""
    tree = ast.parse(source)
    passed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed.add(id(node.value))  # a docstring, or a comment in the shape of one
        elif isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if called in MARKS or (called.endswith(NOT_SHOWN) and called != "ArgumentTypeError"):
                passed |= {id(inner) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in passed else None
        if isinstance(text, str) and SENTENCE.fullmatch(text.strip(" .!?…\n")):
            yield text


def marked_in(source: str) -> Iterator[str]:
    """Yield the keys of what a module marks."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKS:
            texts = [text.value for text in node.args if isinstance(text, ast.Constant)]
            if texts:
                yield "\x04".join(map(str, texts[: 2 if node.func.id in IN_CONTEXT else 1]))
