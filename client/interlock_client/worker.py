"""The worker loop: claim, run, renew, commit; threads of the standard library and nothing else.

One thread claims, one renews, one settles, `concurrency` run handlers. Whoever finds that a lease is gone, or
cannot be known to last, lets go of it: nothing is sent and nothing is committed from then on.
"""

from __future__ import annotations

import json
import logging
import queue
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from interlock_client.client import Client
from interlock_client.context import (
    Cancelled,
    Context,
    Ending,
    Fail,
    LeaseLost,
    Skip,
    TimedOut,
    Wait,
    identity,
    plain,
)
from interlock_client.effects import Effect
from interlock_client.leases import Claimed, Leases, boottime
from interlock_client.problems import CancelRequested, Fenced, NoAnswer, Problem, StaleInput

log = logging.getLogger("interlock_client")

WAIT = 20.0
"""Seconds that one claim waits for work."""
AT_ONCE = 100
"""Results of one commit."""
MESSAGE_CHARACTERS = 4_000
TRACE_CHARACTERS = 16_000
UNFIT = ("invalid-body", "body-too-large")
BAD_RESULT = "RESULT_VALIDATION_FAILED"
PAUSE = 1.0
GLANCE = 0.2
REMEMBERED_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of work: `function` gets the context and the job's arguments by name."""

    name: str
    function: Callable[..., Any]


class Worker:
    """Runs kinds of work for one token until `stop()`, or until the server will not have it any more."""

    def __init__(
        self,
        client: Client,
        *,
        queues: Iterable[str],
        kinds: Iterable[Kind],
        effects: Iterable[Effect] = (),
        concurrency: int = 4,
        heartbeat: float = 15.0,
        name: str = "",
    ) -> None:
        self.name = name or identity()
        self.queues = list(queues)
        self.kinds: Mapping[str, Kind] = {kind.name: kind for kind in kinds}
        self.effects: Mapping[str, Effect] = {effect.name: effect for effect in effects}
        self.concurrency = concurrency
        self.heartbeat = heartbeat
        self.leases = Leases(client.transport, {"id": self.name, "concurrency": concurrency})
        self.ended: BaseException | None = None
        """Why it stopped by itself: its token was revoked, or it was fenced."""
        self._asked = threading.Event()
        self._settled = threading.Event()
        self._wake = threading.Event()
        """Ends the pause between two renewals, or has it measured anew."""
        self._lock = threading.Lock()
        self._held: dict[str, Claimed] = {}
        self._gone: dict[str, float] = {}
        """Attempts that were let go, and until when they are told of: they must run out."""
        self._todo: queue.SimpleQueue[Claimed | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Claimed, Any] | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(concurrency)

    def stop(self) -> None:
        """Claim no more; `run` returns when what is in hand has ended. No signal handler may call it."""
        self._asked.set()
        self._wake.set()

    def serve(self) -> None:
        """Run until SIGTERM or SIGINT, from the main thread; raises as `run` does."""
        asked: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            # A handler may interrupt whoever holds a lock, so it takes none.
            signal.signal(number, lambda number, _frame: asked.append(number))
        loop = self._start(self._quietly, "loop")
        while loop.is_alive():
            loop.join(GLANCE)
            if asked:
                self.stop()
        if self.ended is not None:
            raise self.ended

    def _quietly(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001  (raised by `serve`, in the main thread)
            self.ended = self.ended or error

    def run(self) -> None:
        """Work until stopped. Raises the Problem that ended it: a revoked token, a fenced worker."""
        hands = [self._start(self._work, f"hand-{number}") for number in range(self.concurrency)]
        settler, renewer = self._start(self._settle, "settle"), self._start(self._renew, "renew")
        try:
            while not self._asked.is_set():
                self._claim()
        finally:
            self._asked.set()
            for _ in hands:
                self._todo.put(None)
            for hand in hands:
                hand.join()
            self._done.put(None)
            settler.join()
            self._settled.set()
            self._wake.set()
            renewer.join()
        if self.ended is not None:
            raise self.ended

    def _start(self, target: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=self._guarded, args=(target,), name=name, daemon=True)
        thread.start()
        return thread

    def _guarded(self, target: Callable[[], None]) -> None:
        """Run one of our loops: a worker that has lost one would hold jobs and end none."""
        try:
            target()
        except BaseException as error:  # noqa: BLE001  (raised by `run`)
            self._end(error)

    # -- claiming -----------------------------------------------------------------------------------------

    def _claim(self) -> None:
        """Claim for the hands that are free."""
        if not self._room.acquire(timeout=PAUSE):
            return
        room = 1
        while room < self.concurrency and self._room.acquire(blocking=False):
            room += 1
        got: list[Claimed] = []
        try:
            with self._lock:
                self._gone = {attempt: until for attempt, until in self._gone.items() if boottime() < until}
                holding = [*self._held, *self._gone]
            got, pause = self.leases.claim(
                queues=self.queues,
                kinds=list(self.kinds),
                limit=room,
                # Busy, it comes back when a hand is free; a signal is not kept waiting for ever either.
                wait=WAIT if room == self.concurrency else PAUSE,
                holding=holding,
            )
            with self._lock:
                self._held |= {one.attempt_id: one for one in got}
            if got:
                self._wake.set()
            for one in got:
                self._todo.put(one)
            self._asked.wait(pause)
        except (Problem, NoAnswer) as error:
            if isinstance(error, Problem) and not error.retryable:
                self._end(error)
            else:
                log.warning("no claim: %s", error)
                self._asked.wait(PAUSE)
        finally:
            for _ in range(room - len(got)):
                self._room.release()

    def _end(self, error: BaseException) -> None:
        """The server will not have us: stop, and let what is in hand run out."""
        log.error("stopping: %s", error)
        self.ended = self.ended or error
        self.stop()

    # -- running ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (one := self._todo.get()) is not None:
            try:
                if one.is_over:
                    self._let_go(one, one.lost or "LEASE_EXPIRED")
                elif self._asked.is_set():
                    self._done.put((one, Ending("release", message="the worker stopped")))
                else:
                    self._done.put((one, self._run(one)))
            finally:
                self._room.release()

    def _run(self, one: Claimed) -> Any:
        """Run a handler; returns its result, or the Ending that it asked for: either can be sent."""
        value = self._call(one)
        if isinstance(value, LeaseLost):
            return value
        try:
            json.dumps(value.said if isinstance(value, Ending) else value, allow_nan=False)
        except Exception as error:  # noqa: BLE001  (a value that breaks the serialiser is a bad result)
            return _failed(BAD_RESULT, f"{type(error).__name__}: {plain(error)}")
        return value

    def _call(self, one: Claimed) -> Any:
        if one.ruled is not None:
            return one.ruled["result"]  # a person has said what came of it
        try:
            value = self.kinds[one.kind].function(Context(self, one), **one.input)
        except Ending as ending:
            return ending
        except Cancelled:
            return Ending("acknowledge-cancel")
        except LeaseLost as lost:
            return lost
        except TimedOut:
            return _failed("RUNTIME_HANDLER_TIMEOUT", f"still running after {one.timeout:g} s")
        except Skip as skip:
            return Ending("skip", error_code=skip.code, message=plain(skip.message)[:MESSAGE_CHARACTERS])
        except Fail as failed:
            return _failed(failed.code, failed.message, failed.retry_after)
        except BaseException as error:  # noqa: BLE001  (nothing that user code does ends the worker)
            message = f"{type(error).__name__}: {plain(error)}"
            return _failed("RUNTIME_HANDLER_EXCEPTION", message, trace=traceback.format_exc())
        if isinstance(value, Wait):
            return Ending("wait", seconds=value.seconds, reason=value.reason)
        return value

    # -- settling -----------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Send what has ended: results together, other endings one by one."""
        while (first := self._done.get()) is not None:
            batch = [first]
            while len(batch) < AT_ONCE:
                try:
                    more = self._done.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    self._done.put(None)
                    break
                batch.append(more)
            results: list[tuple[Claimed, Any]] = []
            for one, value in batch:
                if isinstance(value, LeaseLost):
                    self._let_go(one, str(value))
                elif one.is_over:
                    self._let_go(one, one.lost or "LEASE_EXPIRED")
                elif isinstance(value, Ending):
                    self._send_ending(one, value)
                else:
                    results.append((one, value))
            if results:
                self._commit(results)

    def _commit(self, results: list[tuple[Claimed, Any]]) -> None:
        try:
            answers = self.leases.commit(results)
        except (Problem, NoAnswer) as error:
            if len(results) > 1:  # one that cannot be taken must not spoil the others
                for result in results:
                    self._commit([result])
                return
            ((one, _value),) = results
            if isinstance(error, Problem) and error.code in UNFIT:
                self._send_ending(one, _failed(BAD_RESULT, error.detail))
            else:
                self._let_go(one, str(error))
            return
        for (one, _value), answer in zip(results, answers, strict=True):
            match answer["code"], answer.get("reason"):
                case "COMMITTED", _:
                    self._forget(one)
                case "CANCELLED", _:
                    self._send_ending(one, Ending("acknowledge-cancel"))
                case ("STALE_INPUT", _) | (_, "HELD"):
                    self._send_ending(
                        one, Ending("release", message="the input was revised, or it is on hold")
                    )
                case _, "EFFECT_UNRESOLVED":
                    note = "the handler returned while the outcome of an effect was open"
                    self._send_ending(one, Ending("uncertain", note=note))
                case _, reason:
                    self._let_go(one, str(reason))

    def _send_ending(self, one: Claimed, ending: Ending) -> None:
        try:
            self.leases.end(one, ending.verb, **ending.said)
        except CancelRequested:
            self._send_ending(one, Ending("acknowledge-cancel"))
        except (Fenced, StaleInput) as error:
            self._let_go(one, error.body.get("reason", ""))
        except Problem as error:
            if error.code not in UNFIT or ending.said.get("error_code") == BAD_RESULT:
                self._let_go(one, str(error))
                return
            # What the handler said cannot be taken: that is its end, not a lease that runs out.
            words = f"{ending.verb}: {error.detail} {ending.said.get('message', '')}"
            self._send_ending(one, _failed(BAD_RESULT, words.rstrip()))
        except NoAnswer as error:
            self._let_go(one, str(error))
        else:
            self._forget(one)

    def _let_go(self, one: Claimed, reason: str) -> None:
        """The lease is gone, or runs out: what the attempt did is worth nothing."""
        one.lost = one.lost or reason or "LEASE_EXPIRED"
        with self._lock:
            self._gone[one.attempt_id] = one.surely_ends + REMEMBERED_SECONDS
        log.warning("lease lost, result discarded: attempt %s, %s", one.attempt_id, one.lost)
        self._forget(one)

    def _forget(self, one: Claimed) -> None:
        with self._lock:
            self._held.pop(one.attempt_id, None)

    # -- renewing -----------------------------------------------------------------------------------------

    def _renew(self) -> None:
        """Renew in the background, until all is settled; handlers hear of what is lost at their next step."""
        told = False
        last = boottime()
        while not self._settled.is_set():
            self._wake.wait(max(0.0, last + self._interval() - boottime()))
            self._wake.clear()
            stopping = self._asked.is_set()
            if boottime() < last + self._interval() and (told or not stopping):
                continue  # a claim brought a shorter lease: wait anew, and not as long
            last = boottime()
            with self._lock:
                held = [one for one in self._held.values() if not one.lost]
            if not held and (told or not stopping):
                continue
            try:
                # A claim that waits on the server ends when it hears that we stop.
                self.leases.renew(held, stopping=stopping)
                told = stopping
            except Problem as error:
                log.warning("leases not renewed: %s", error)
                if error.status in (401, 403) and not stopping:
                    self._end(error)
            except NoAnswer as error:
                # Nobody knows; each lease ends by our own clock when it surely has.
                log.warning("leases not renewed: %s", error)
        try:
            self.leases.renew([], stopped=True)
        except (Problem, NoAnswer) as error:
            log.info("not said that we stopped: %s", error)

    def _interval(self) -> float:
        with self._lock:
            shortest = min((one.ttl for one in self._held.values()), default=self.heartbeat * 3)
        return min(self.heartbeat, shortest / 3)


def _failed(code: str, message: str, retry_after: float | None = None, *, trace: str = "") -> Ending:
    said: dict[str, Any] = {"error_code": code, "message": plain(message)[:MESSAGE_CHARACTERS]}
    said |= {} if retry_after is None else {"retry_after": retry_after}
    return Ending("fail", **said, **({"traceback": plain(trace)[-TRACE_CHARACTERS:]} if trace else {}))
