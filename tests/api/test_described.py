"""docs/openapi.yaml has all of these views, and what it says of them.

That they answer so is looked at by tests/fuzz, and in each test that asks with tests/api/caller.py.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.staticfiles import finders

from jobs.api import openapi, urls
from jobs.api.artefacts import Bytes
from tests.api import described


def test_committed_description_is_the_one_of_the_views():
    made = openapi.document()
    hint = "run `python -m config.openapi`"
    assert openapi.YAML.read_text("utf-8") == openapi.as_yaml(made), hint
    assert openapi.JSON.read_text("utf-8") == openapi.as_json(made), hint


def test_every_address_is_described_with_its_bodies_and_answers():
    found = [getattr(getattr(p, "callback", None), "view_class", None) for p in urls.urlpatterns[:-1]]
    views: set[Any] = {view for view in found if view}
    for view in views:
        for method in view.scopes:
            assert view.answers.get(method), (view.__name__, method)
            bodiless = method == "GET" or view.parser_classes == (Bytes,)
            assert bodiless or method in view.bodies, (view.__name__, method)
    assert len(described.operations()) == sum(len(view.scopes) for view in views)


@pytest.mark.looks_alike
def test_documentation_page_holds_no_inline_script_or_style_and_needs_no_log_in(client):
    answer = client.get("/api/v1/docs")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    assert not re.search(r"<style|<script(?![^>]* src=)|\son\w+=|\sstyle=|https?://", page)
    for name in re.findall(r'(?:src|href|data-description)="/static/([^"]+)"', page):
        assert finders.find(name), name
