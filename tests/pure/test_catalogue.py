"""The catalogue: complete, compiled from what is written, true to its placeholders; nothing is said outside.

In modules, what is looked for is what reads like a sentence: a single word is taken for a code. Texts put
together from words, those of libraries and those in scripts (which take theirs from attributes) are not seen.
"""

from __future__ import annotations

import gettext
import re
from collections import Counter

import pytest

from tests import catalogue
from tests.catalogue import ROOT

pytestmark = pytest.mark.looks_alike

PLACEHOLDER = re.compile(r"%\(\w+\)[\d.]*[sdf]|%[\d.]*[sdf]|\{\w*\}")
NAMES = {"Interlock", "UTC", "SAFE", "WAIT", "BLOCKED", "ilk", "t"}
"""The same in every language: product, clock, a drain's verdicts, how a token begins, time in drills."""
KEPT_FOR_MACHINES = {"no plan was begun with this job", "the parent is gone"}
"""A skipped job's record, and a log line."""


@pytest.fixture(scope="module")
def messages():
    return catalogue.read()


def test_every_message_is_translated(messages):
    head, *entries = messages
    assert "nplurals=1;" in head.translated[0]
    assert len(entries) > 1500
    wrong = [m.english for m in entries if m.fuzzy or len(m.translated) != 1 or not m.translated[0].strip()]
    assert wrong == []


def test_translation_has_the_placeholders_of_its_english(messages):
    def holes(text):
        return Counter(PLACEHOLDER.findall(text.replace("%%", "")))

    # The one Chinese form stands for both of the English ones, so it needs what the plural says.
    wrong = [
        (m.english, m.translated[0])
        for m in messages[1:]
        if holes(m.plural or m.english) != holes(m.translated[0])
        or (m.english.count("%%") and not m.translated[0].count("%%"))
        or m.english.startswith("\n") != m.translated[0].startswith("\n")
        or m.english.endswith("\n") != m.translated[0].endswith("\n")
    ]
    assert wrong == []


def test_compiled_catalogue_says_what_the_written_one_says(messages):
    with catalogue.COMPILED.open("rb") as file:
        compiled = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    del compiled[""]  # the head; a compiler leaves dates out
    written = {(m.key, 0) if m.plural else m.key: m.translated[0] for m in messages[1:]}
    assert compiled == written, "run `make catalogue`"


def test_no_template_says_anything_outside_the_catalogue():
    said = {
        name: set(catalogue.words_of(text)) - NAMES for name, text in sources("templates", "html").items()
    }
    assert {name: words for name, words in said.items() if words} == {}


@pytest.mark.parametrize("folder", ["console", "jobs/operations", "jobs/management"])
def test_no_module_says_anything_outside_the_catalogue(folder):
    said = {text for source in sources(folder, "py").values() for text in catalogue.sentences_of(source)}
    assert said - KEPT_FOR_MACHINES == set()


def test_every_marked_text_is_in_the_catalogue(messages):
    marked = {key for text in sources("templates", "html").values() for key in catalogue.keys_of(text)}
    for folder in ("console", "jobs", "demo"):
        marked |= {text for source in sources(folder, "py").values() for text in catalogue.marked_in(source)}
    assert {m.key for m in messages[1:]} == marked, "run `make catalogue`"


def sources(folder, kind):
    """Return the files of a folder by their names."""
    files = sorted((ROOT / folder).rglob(f"*.{kind}"))
    assert files
    return {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in files}
