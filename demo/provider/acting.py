"""How a fault bends what would have been done and answered."""

from collections.abc import Callable

from demo.provider.fault import Fault, Kind
from demo.provider.message import Answer, Refused

GARBAGE = b"\x80\xff<html>200 OK</ht"


def send(fault: Fault | None, see: Callable[[], None], act: Callable[[], Answer]) -> Answer | None:
    """Return the answer, or None when the connection is to be closed without one.

    `see` takes note of who asks, unless the request is lost before anybody looks at it.
    A refusal by `act` is an answer like any other: it too is lost, late or garbled.
    """
    if fault is None:
        see()
        return act()
    match fault.kind:
        case Kind.DROP_BEFORE:
            return None
        case Kind.ERROR:
            raise Refused(503, "unavailable", "The service is not available.")
        case Kind.REFUSE:
            see()
            raise Refused(402, "refused", "The charge was refused.")
        case Kind.DELAY:
            # Whoever asked may be gone when this ends. It is done all the same: that is the point.
            fault.lifted.wait(fault.seconds)
    try:
        see()
        answer = act()
    except Refused as refusal:
        answer = refusal.answer
    match fault.kind:
        case Kind.DROP:
            return None
        case Kind.DELAY_ANSWER:
            fault.lifted.wait(fault.seconds)
        case Kind.ACT_THEN_ERROR:
            return Answer(500, {"code": "internal", "message": "Something went wrong."})
        case Kind.GARBAGE:
            return Answer(200, GARBAGE)
        case Kind.NOT_FOUND:
            raise not_found()
    return answer


def not_found() -> Refused:
    return Refused(404, "not_found", "There is nothing here.")
