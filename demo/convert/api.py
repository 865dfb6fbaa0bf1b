"""The one call: convert a file into another."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.convert.errors import Code, ConversionRefused
from demo.convert.kinds import kind_of
from demo.convert.limits import Limits, size
from demo.convert.output import draft
from demo.convert.process import converted
from demo.convert.request import Request
from demo.convert.summary import Found, Summary


def convert_file(
    source: Path,
    target: Path,
    to: str,
    *,
    name: str = "",
    limits: Limits | None = None,
    should_stop: Callable[[], bool] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Write `source`, converted, to `target`; replace what was there in one step.

    `name` is what people call the file, if its path does not say; its kind is read off the path.
    `should_stop` is asked about four times a second. `on_progress` is told
    (bytes read, bytes in all) while a CSV is read. What either raises ends the
    conversion and comes out of this call.

    Raises ConversionRefused when the document is at fault, ConverterUnavailable
    when the machine is, ConversionStopped when `should_stop` said so, and OSError
    when the target's folder cannot be written. Then the target is untouched, no
    other file is left and no process runs on.
    """
    limits = limits or Limits()
    name = name or source.name
    kind = kind_of(source, name, to)
    started = time.monotonic()
    with (
        _opened(source, name, limits.source_bytes(kind)) as (source_fd, source_bytes),
        draft(target) as result,
    ):
        request = Request(name, kind, to, source_fd, result.fd, os.getpid(), limits)
        found, peak_kib = converted(request, should_stop=should_stop, on_progress=on_progress)
        target_bytes = os.fstat(result.fd).st_size
        result.publish()
    return _summary(request, found, source_bytes, target_bytes, time.monotonic() - started, peak_kib)


@contextmanager
def _opened(source: Path, name: str, most: int) -> Iterator[tuple[int, int]]:
    """Open a regular file of a permitted size, or refuse it before any work is done."""
    try:
        # O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
        fd = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ConversionRefused(
            Code.MISSING, f"{name} cannot be opened: {(error.strerror or 'unknown error').lower()}."
        ) from error
    except ValueError as error:  # a NUL in the path
        raise ConversionRefused(Code.MISSING, f"{name!r} is not a possible file name.") from error
    try:
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode):
            raise ConversionRefused(Code.MISSING, f"{name} is not a regular file.")
        if seen.st_size > most:
            raise ConversionRefused(
                Code.TOO_LARGE, f"{name} has {size(seen.st_size)}: the limit is {size(most)}."
            )
        if seen.st_size == 0:
            raise ConversionRefused(Code.EMPTY, f"{name} is empty: there is nothing to convert.")
        yield fd, seen.st_size
    finally:
        os.close(fd)


def _summary(
    request: Request, found: Found, source_bytes: int, target_bytes: int, seconds: float, peak_kib: int
) -> Summary:
    return Summary(
        source=request.name,
        kind=request.kind,
        to=request.to,
        title=found.title,
        encoding=found.encoding,
        counts=found.counts,
        notes=found.notes,
        source_bytes=source_bytes,
        target_bytes=target_bytes,
        seconds=round(seconds, 3),
        peak_kib=peak_kib,
    )
