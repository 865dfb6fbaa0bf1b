"""docs/api.md: each curl line does what it says, and each table is the code's."""

import http.client
import re
import shlex
from urllib.parse import urlsplit

import pytest

from config.env import ROOT as FOLDER
from jobs import handlers
from jobs.api.enqueue import EnqueueBody
from jobs.api.filters import JobFilter
from jobs.api.problems import KINDS
from jobs.models import ApiToken, Job
from jobs.permissions import NEEDS
from tests.api.caller import ROOT, operator, secret

pytestmark = pytest.mark.looks_alike

TEXT = (FOLDER / "docs/api.md").read_text("utf-8")
BLOCKS = re.findall(r"```sh\n(curl .*?)\n# (\d+)\n```", TEXT, re.DOTALL)


def curl(line, variables):
    """Send what a curl line would send; knows the options that the document uses, and refuses others."""
    words = shlex.split(re.sub(r"\$([A-Z]+)", lambda found: variables[found[1]], line.replace("\\\n", " ")))
    assert words.pop(0) == "curl"
    method, headers, body, url = "GET", {}, None, ""
    while words:
        word = words.pop(0)
        if word == "-X":
            method = words.pop(0)
        elif word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = words.pop(0).encode()
        else:
            assert word.startswith("http"), word
            url = word
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
    try:
        connection.request(method, f"{address.path}?{address.query}".rstrip("?"), body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_every_curl_line_gets_the_answer_it_names(transactional_db, live_server):
    @handlers.job("docs.letter")
    def letter(number):
        pass

    assert len(BLOCKS) == TEXT.count("```sh") > 5
    token = secret(*ApiToken.SCOPES, owner=operator())
    variables = {"API": live_server.url + ROOT, "TOKEN": token, "JOB": ""}
    for line, status in BLOCKS:
        assert curl(line, variables) == int(status), line
        variables["JOB"] = variables["JOB"] or str(Job.objects.get().id)


@pytest.mark.parametrize("code", KINDS)
def test_every_problem_is_listed(code):
    kind = KINDS[code]
    assert f"| `{code}` | {kind.status} | {'yes' if kind.retryable else 'no'} |" in TEXT


def test_every_member_and_filter_and_scope_is_named():
    for name in [*EnqueueBody().fields, *JobFilter.base_filters]:
        assert f"`{name}`" in TEXT, name
    for scope, permission in NEEDS.items():
        assert re.search(rf"\| `{scope}` \| `{permission}` \|", TEXT), scope
