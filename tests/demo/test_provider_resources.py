"""Conditional writes to the payment service's resources."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.provider import Provider, Reply


@pytest.fixture
def provider(tmp_path):
    with Provider.running(tmp_path, "--mode", "fencing") as running:
        yield running


def put(provider, value: str, match: str | None, **headers: str) -> Reply:
    condition = {"If-None-Match": "*"} if match is None else {"If-Match": match}
    named = {name.replace("_", "-"): given for name, given in headers.items()}
    return provider.call("PUT", "resources/limit:acme", {"value": value}, condition | named)


def test_write_with_the_latest_etag_makes_the_next_version(provider):
    first = put(provider, "1", None)
    assert (first.status, first.json["version"]) == (201, 1)
    second = put(provider, "2", first.headers["ETag"], Idempotency_Key="k-2")
    assert (second.status, second.json["version"], second.json["key"]) == (200, 2, "k-2")
    shown = provider.call("GET", "resources/limit:acme")
    assert shown.headers["ETag"] == second.headers["ETag"] != first.headers["ETag"]
    assert shown.json["value"] == {"value": "2"}


def test_write_with_a_stale_etag_is_refused(provider):
    first = put(provider, "1", None)
    put(provider, "2", first.headers["ETag"])
    stale = put(provider, "3", first.headers["ETag"])
    assert (stale.status, stale.code) == (412, "stale_etag")
    assert put(provider, "3", None).status == 412
    assert [each["value"] for each in provider.ledger()["versions"]] == [{"value": "1"}, {"value": "2"}]


def test_writing_the_same_content_again_makes_another_etag(provider):
    first = put(provider, "1", None)
    second = put(provider, "1", first.headers["ETag"])
    assert put(provider, "1", first.headers["ETag"]).status == 412
    assert second.headers["ETag"] != first.headers["ETag"]


@pytest.mark.parametrize("match", ["*", "W/", '"a", "b"'])
def test_write_that_names_no_single_etag_is_refused(provider, match):
    put(provider, "1", None)
    assert put(provider, "2", match).status == 428
    assert provider.call("PUT", "resources/limit:acme", {"value": "2"}).status == 428


def test_of_simultaneous_writes_with_one_etag_one_wins(provider):
    etag = put(provider, "0", None).headers["ETag"]
    with ThreadPoolExecutor(6) as threads:
        statuses = list(threads.map(lambda n: put(provider, str(n), etag).status, range(6)))
    assert sorted(statuses) == [200] + [412] * 5
    assert len(provider.ledger()["versions"]) == 2


def test_lost_write_happened_and_its_key_is_found_in_the_history(provider):
    etag = put(provider, "1", None).headers["ETag"]
    provider.fault("drop", resource="limit:acme")
    with pytest.raises(OSError, match=r"closed connection|reset"):
        put(provider, "2", etag, Idempotency_Key="k-2")
    assert put(provider, "2", etag, Idempotency_Key="k-2").status == 412
    written = provider.call("GET", "resources/limit:acme?key=k-2").json["versions"]
    assert [each["value"] for each in written] == [{"value": "2"}]
    assert provider.call("GET", "resources/limit:acme?key=k-3").code == "not_found"


def test_written_resource_survives_being_killed(provider):
    etag = put(provider, "1", None).headers["ETag"]
    provider.kill()
    provider.start()
    assert put(provider, "2", etag).status == 200


def test_lower_fencing_token_cannot_write_even_with_the_latest_etag(provider):
    etag = put(provider, "1", None, Fencing_Token="5").headers["ETag"]
    late = put(provider, "2", etag, Fencing_Token="4")
    assert (late.status, late.code) == (409, "stale_token")
    assert put(provider, "2", etag, Fencing_Token="6").status == 200


def test_impossible_name_is_not_found(provider):
    reply = provider.call("PUT", "resources/a%20b", {}, {"If-None-Match": "*"})
    assert reply.status == 404


def test_deeply_nested_content_is_refused_and_harms_nobody(provider):
    for depth in (40, 900, 10_000):
        body = b'{"a":' * depth + b"1" + b"}" * depth
        reply = provider.call("PUT", "resources/deep", body, {"If-None-Match": "*"})
        assert (reply.status, reply.json["field"]) == (422, "body")
    assert provider.ledger()["versions"] == []
