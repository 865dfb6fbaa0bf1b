"""What a client process can be told to do: `MODULE VERB [N]`, answered by one line of JSON.

    prepare     lay the tables in an empty database
    enqueue N   enqueue N no-op jobs one by one, each durable when the call returns; answers the seconds
    bulk N      the same, a thousand a call
    pickup N    enqueue N jobs with pauses between; answers [number, instant of the call's return] for each
    write N     claim and commit in N threads until SIGTERM (ours only)
    raises N    raise the epoch N times with pauses between; answers the seconds of each (ours only)
    raise_beside N  stop the writer with this process number, raise the epoch; answers the seconds (ours only)
    token       make a token for workers and who enqueues; answers its secret (the product's module only)
    work        run a worker until SIGTERM (a peer's module only; ours is manage.py runworker)

Seconds are counted from an open connection on, so that a process's start is not in them.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

BULK = 1000
PAUSE = 0.1


def numbers_with_pauses(count: int) -> Iterator[int]:
    """Yield 0 to count - 1, about one in 100 ms: with jitter, so that no poll falls into step with it."""
    jitter = random.Random(1)
    for number in range(count):
        time.sleep(PAUSE * jitter.uniform(0.6, 1.4))
        yield number


def obey(verbs: dict[str, Callable[..., Any]]) -> None:
    """Do what the command line says and print the answer."""
    name, *numbers = sys.argv[1:]
    print(json.dumps(verbs[name](*map(int, numbers))))
