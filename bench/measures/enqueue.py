"""How fast jobs come in: one by one, each durable when the call returns, and a thousand a call."""

from typing import Any

from bench.ground import Ground
from bench.sides import Side


def one_by_one(ground: Ground, side: Side, count: int) -> dict[str, Any]:
    """Enqueue `count` jobs through one connection, a transaction each."""
    return _timed(ground, side, "enqueue", count)


def bulk(ground: Ground, side: Side, count: int) -> dict[str, Any]:
    """Enqueue `count` jobs through the bulk call."""
    return _timed(ground, side, "bulk", count)


def requests(ground: Ground, side: Side, count: int) -> dict[str, Any]:
    """Enqueue `count` jobs through the API, a request each, in one process without a network."""
    return _timed(ground, side, "requests", count)


def batches(ground: Ground, side: Side, count: int) -> dict[str, Any]:
    """Enqueue `count` jobs through the API, a thousand a request."""
    return _timed(ground, side, "batches", count)


def _timed(ground: Ground, side: Side, verb: str, count: int) -> dict[str, Any]:
    url = ground.fresh(side)
    rate = ground.commits_per_s()
    seconds = float(side.ask(url, verb, count))
    return {"n": count, "seconds": seconds, "per_s": round(count / seconds), "commit_per_s": rate}
