"""One Idempotency-Key is one job: whatever is sent with it, in whatever order, by one client or by two."""

from __future__ import annotations

import threading
import uuid
from typing import Any

from django.db import connection
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jobs.models import Job
from tests.api.caller import EVERY_SCOPE, Api, secret
from tests.build import KIND

KEYS = ("a", "b", None)
INPUTS: tuple[dict[str, Any], ...] = ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, {"a": 1}, {"a": 1, "b": [3]})
SAME = (0, 0, 1, 2)
"""Which of the inputs are the same."""
ASKED = st.tuples(st.sampled_from(KEYS), st.sampled_from(range(len(INPUTS))))


def rules(most: int) -> Any:
    return settings(
        max_examples=most,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )


def send(api: Api, run: str, asked: tuple[str | None, int]) -> tuple[int, dict[str, Any]]:
    key, number = asked
    header = {} if key is None else {"HTTP_IDEMPOTENCY_KEY": f"{run}-{key}"}
    answer = api.send({"kind": KIND, "arguments": INPUTS[number]}, **header)
    return answer.status_code, answer.json()


@rules(20)
@given(steps=st.lists(ASKED | st.just("end"), max_size=7))
def test_request_after_request_gets_the_keys_job_or_is_told_of_it(api, steps):
    run, before = uuid.uuid4().hex, Job.objects.count()
    held: dict[str | None, tuple[str, int]] = {}
    made: list[uuid.UUID] = []
    for step in steps:
        if step == "end":
            for job_id in made:
                Job.objects.cancel(job_id, actor="me")
            continue
        key, number = step
        status, body = send(api, run, step)
        if key is None or key not in held:
            assert status == 201, body
            made.append(uuid.UUID(body["id"]))
            held[key] = body["id"], SAME[number]
        elif held[key][1] == SAME[number]:
            assert (status, body["id"]) == (200, held[key][0])
        else:
            assert (status, body["code"], body["job_id"]) == (409, "key-conflict", held[key][0])
    assert Job.objects.count() - before == len(made)


@rules(12)
@given(lists=st.tuples(*[st.lists(ASKED, min_size=1, max_size=4)] * 2))
def test_two_clients_at_once_get_what_one_of_their_orders_would_have_given(transactional_db, lists):
    run, token, before = uuid.uuid4().hex, secret(*EVERY_SCOPE), Job.objects.count()
    answers: list[list[tuple[tuple[str | None, int], int, dict[str, Any]]]] = [[], []]
    gate = threading.Barrier(2)

    def client(number: int) -> None:
        try:
            api = Api(token)
            gate.wait(30)
            for asked in lists[number]:
                answers[number].append((asked, *send(api, run, asked)))
        finally:
            connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(told) for told in answers] == [len(asked) for asked in lists]
    together = [one for told in answers for one in told]
    for key in KEYS[:-1]:
        mine = [one for one in together if one[0][0] == key]
        firsts = [(SAME[asked[1]], body["id"]) for asked, status, body in mine if status == 201]
        assert len(firsts) == bool(mine), mine
        for asked, status, body in mine:
            ((number, job_id),) = firsts
            wanted = (409,) if SAME[asked[1]] != number else (200, 201)
            assert (status in wanted, body.get("job_id", body.get("id"))) == (True, job_id), mine
    assert {status for asked, status, _body in together if asked[0] is None} <= {201}
    assert Job.objects.count() - before == [status for _asked, status, _body in together].count(201)
