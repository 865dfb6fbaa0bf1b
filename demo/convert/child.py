"""The process that does one conversion: `python -m demo.convert.child REQUEST`.

It gets open files instead of paths and answers on its standard output, one
JSON object a line (see request.py). It is confined before it reads a byte.
"""

import errno
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from demo.convert import confine, verdict
from demo.convert.errors import Code, ConversionRefused
from demo.convert.limits import size
from demo.convert.request import DONE, PROGRESS, REFUSED, UNAVAILABLE, Request

PROGRESS_EVERY = 0.1


def main(argument: str) -> None:
    request = Request.loads(argument)
    confine.die_with(request.parent)
    confine.confine(request.limits)
    say(answer(request))
    # Skip the tear-down of big structures: all is written.
    os._exit(0)


def answer(request: Request) -> dict[str, Any]:
    """Do the conversion; whatever comes of it is an answer."""
    try:
        from demo.convert.work import convert

        with (
            open(request.source_fd, "rb", closefd=False) as source,
            open(request.target_fd, "wb", closefd=False) as target,
        ):
            found = convert(request, source, target, every(PROGRESS_EVERY, say_progress))
    except ConversionRefused as refusal:
        return verdict.refused(refusal.code, refusal.message)
    except MemoryError:
        confine.loosen()
        return verdict.refused(*verdict.too_much_memory(request))
    except RecursionError:
        return verdict.refused(*verdict.too_deep(request.name, request.limits.depth))
    except OSError as error:
        if error.errno == errno.EFBIG:
            most = size(request.limits.output_bytes)
            message = f"{request.name} becomes larger than {most}, the limit of a result."
            return verdict.refused(Code.TOO_LARGE, message)
        return {UNAVAILABLE: f"The converter cannot read or write: {error}."}
    except ImportError as error:
        return {UNAVAILABLE: f"The converter lacks a library ({error.name})."}
    # A library may fail in ways that nobody can list; this is the boundary that gives them one name.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        if confine.cramped(request.limits):  # out of memory, put in other words
            confine.loosen()
            return verdict.refused(*verdict.too_much_memory(request))
        reason = f"{type(error).__name__}: {error}"[:200]
        return {REFUSED: [Code.FAILED, f"{request.name} cannot be converted ({reason})."]}
    return {DONE: asdict(found), "peak_kib": confine.peak_kib()}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def say_progress(done: int, total: int) -> None:
    say({PROGRESS: [done, total]})


def every(interval: float, report: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Pass the first report on at once and the next ones no more often than this."""
    due = 0.0

    def throttled(done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due or done == total:
            due = now + interval
            report(done, total)

    return throttled


if __name__ == "__main__":
    main(sys.argv[1])
