"""docs/remote.md: each curl line gets the answer that it names, in the order of the page."""

import json
import re

import pytest

from config.env import ROOT as FOLDER
from jobs import effect_kinds, handlers
from jobs.api.leases import ENDINGS
from jobs.effect_kinds import effect_kind
from tests.api.caller import ROOT, Api, person, secret
from tests.api.test_docs import curl

pytestmark = pytest.mark.looks_alike

TEXT = (FOLDER / "docs/remote.md").read_text("utf-8")
BLOCKS = re.findall(r"```sh\n(curl .*?)\n# (\d+)\n```", TEXT, re.DOTALL)


@pytest.fixture
def letter():
    @handlers.job("docs.letter")
    def letter(number):
        pass

    @effect_kind("docs.charge", replay="idempotent")
    def charge(request):
        pass

    yield letter
    effect_kinds.forget("docs.charge")


def test_every_curl_line_gets_the_answer_it_names(transactional_db, live_server, letter):
    letter.enqueue(number=1)
    token = secret("worker", owner=person("robot", "run_worker"))
    variables = {"API": live_server.url + ROOT, "TOKEN": token, "LEASE": "", "ATTEMPT": ""}
    assert len(BLOCKS) == TEXT.count("```sh") > 5
    for line, status in BLOCKS:
        quoted = {name: value.replace('"', '\\"') for name, value in variables.items()}
        assert curl(line, quoted) == int(status), line
        if not variables["LEASE"]:
            # What the claim on the page was given, asked for again as the page says: it held nothing yet.
            body = {"worker": {"id": "far:17:5f0c"}, "queues": ["default"], "kinds": ["docs.letter"]}
            answer = Api(token).send(body | {"holding": []}, "/claims").json()
            (got,) = answer["leases"]
            variables["LEASE"] = json.dumps(got["lease"])
            variables["ATTEMPT"] = got["lease"]["attempt_id"]


@pytest.mark.parametrize("verb", ENDINGS)
def test_every_ending_is_in_the_table_with_all_that_it_may_say(verb):
    row = next(line for line in TEXT.splitlines() if line.startswith(f"| `{verb}` |"))
    for name in map(str, ENDINGS[verb].bodies["POST"]().fields):
        assert name in ("lease", "log") or f"`{name}`" in row, name
