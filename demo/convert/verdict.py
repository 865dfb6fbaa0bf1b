"""What a child's end means for the document."""

import signal
from typing import Any

from demo.convert.errors import Code, ConversionRefused, ConverterUnavailable, Trouble
from demo.convert.limits import seconds, size
from demo.convert.request import DONE, REFUSED, UNAVAILABLE, Request
from demo.convert.summary import Found

# A child that got less than this share of one processor was held up by the machine, not by the document.
STARVED = 0.5
CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE}


def found(answer: dict[str, Any]) -> tuple[Found, int]:
    """Return what the child found and its peak memory, or raise what it said instead."""
    if DONE in answer:
        return Found(**answer[DONE]), int(answer["peak_kib"])
    if REFUSED in answer:
        raise ConversionRefused(*answer[REFUSED])
    raise ConverterUnavailable(Trouble.UNAVAILABLE, answer[UNAVAILABLE])


def of_silence(
    request: Request, *, late: bool, status: int, processor: float, out_of_memory: bool
) -> dict[str, Any]:
    """Say, in the child's stead, why it has not answered."""
    limits, name = request.limits, request.name
    if late and processor < limits.seconds * STARVED:
        raise ConverterUnavailable(
            Trouble.TIMEOUT,
            f"The converter got {processor:.1f} s of a processor in {seconds(limits.seconds)}: "
            "the machine is busy.",
        )
    if late or status == -signal.SIGXCPU:
        return refused(
            Code.TOO_SLOW,
            f"{name} was not converted within {seconds(limits.seconds)}, the limit: "
            "it is too large or too intricate.",
        )
    if out_of_memory:  # a library written in Rust says so and aborts
        return refused(*too_much_memory(request))
    if status in CRASHES:
        return refused(Code.FAILED, f"{name} made a parser crash ({signal.Signals(-status).name}).")
    return {UNAVAILABLE: f"The converter ended without an answer (status {status})."}


def too_much_memory(request: Request) -> tuple[str, str]:
    return Code.TOO_LARGE, (
        f"{request.name} needs more memory to convert than {size(request.limits.memory_bytes)}, the limit."
    )


def too_deep(name: str, depth: int) -> tuple[str, str]:
    return Code.TOO_DEEP, f"{name} is nested too deeply: the limit is {depth} levels."


def refused(code: str, message: str) -> dict[str, Any]:
    return {REFUSED: [code, message]}
