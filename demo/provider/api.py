"""What can be asked of the service."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from demo.provider import acting, charges, fencing, resources
from demo.provider.acting import not_found
from demo.provider.charge import Order, key_of, token_of
from demo.provider.fault import ON_INQUIRE, ON_SEND, Fault
from demo.provider.faults import Faults
from demo.provider.ledger import Ledger
from demo.provider.message import Answer, Refused, Request
from demo.provider.modes import Modes

LONGEST_WAIT = 60


@dataclass
class Service:
    ledger: Ledger
    modes: Modes
    allow_reset: bool = False
    faults: Faults = field(default_factory=Faults)

    def answer(self, request: Request) -> Answer | None:
        """Do what is asked; return the answer, or None to close the connection without one."""
        try:
            return self._route(request)(request)
        except Refused as refusal:
            return refusal.answer

    def _route(self, request: Request) -> Callable[[Request], Answer | None]:
        _, _, name = request.path.removeprefix("/").partition("/")
        routes: dict[str, dict[str, Callable[[Request], Answer | None]]] = {
            "/": {"GET": lambda _: Answer(200, {"service": "provider", "modes": self.modes.shown()})},
            "/charges": {"GET": self._inquire, "POST": self._charge},
            "/ledger": {"GET": self._everything},
            "/faults": {"GET": self._faults, "POST": self._add_fault, "DELETE": self._clear_faults},
            "/reset": {"POST": self._reset},
            f"/charges/{name}": {"GET": lambda _: self._charge_by_id(name)},
            f"/resources/{name}": {
                "GET": lambda request: self._resource(name, request.query.get("key")),
                "PUT": lambda request: self._write(name, request),
            },
        }
        methods = routes.get(request.path)
        if not methods:
            raise not_found()
        if request.method not in methods:
            raise Refused(405, "method_not_allowed", f"Only {' and '.join(methods)} can be used here.")
        return methods[request.method]

    def _charge(self, request: Request) -> Answer | None:
        key, token, order = key_of(request), token_of(request), Order.read(request)
        fault = self.faults.take(ON_SEND, {"invoice": order.invoice, "account": order.account, "key": key})

        def act() -> Answer:
            record = charges.charge(self.ledger, self.modes, key, token, order)
            return Answer(200 if record["replayed"] else 201, record)

        return acting.send(fault, self._see(f"key {key}", token), act)

    def _inquire(self, request: Request) -> Answer | None:
        if "key" not in request.query:
            raise Refused(400, "key_required", "Ask for one key: /charges?key=KEY.")
        found = charges.by_key(self.ledger, request.query["key"])
        # Looked up first: only what exists can be hidden, and its invoice is what a fault goes by.
        facts = {"key": request.query["key"]}
        if found:
            facts |= {name: found[0][name] for name in ("invoice", "account")}
        fault = self.faults.take(ON_INQUIRE, facts, there=bool(found))

        def act() -> Answer:
            # Again: after a delay there may be more.
            now = charges.by_key(self.ledger, request.query["key"])
            if not now:
                raise not_found()
            return Answer(200, {"found": True, "charges": now})

        return acting.send(fault, _nothing, act)

    def _charge_by_id(self, charge_id: str) -> Answer:
        record = charges.by_id(self.ledger, charge_id)
        if record is None:
            raise not_found()
        return Answer(200, record)

    def _write(self, name: str, request: Request) -> Answer | None:
        resources.check(name, request)
        key = key_of(request) if "idempotency-key" in request.headers else None
        token = token_of(request)
        fault = self.faults.take(ON_SEND, {"resource": name} | ({"key": key} if key else {}))

        def act() -> Answer:
            version = resources.write(self.ledger, self.modes, name, request, key, token)
            return Answer(201 if version["version"] == 1 else 200, version, {"ETag": version["etag"]})

        return acting.send(fault, self._see(f"resource {name}", token), act)

    def _resource(self, name: str, key: str | None) -> Answer | None:
        """Answer with the latest version, or with all that were written under a key."""
        written = resources.history(self.ledger, name, key)
        fault = self.faults.take(
            ON_INQUIRE, {"resource": name} | ({"key": key} if key else {}), there=bool(written)
        )

        def act() -> Answer:
            versions = resources.history(self.ledger, name, key)
            if not versions:
                raise not_found()
            if key is not None:
                return Answer(200, {"found": True, "versions": versions})
            return Answer(200, versions[-1], {"ETag": versions[-1]["etag"]})

        return acting.send(fault, _nothing, act)

    def _everything(self, request: Request) -> Answer:
        if count := _number(request.query, "count"):
            self.ledger.wait(count, _wait(request))
        return Answer(200, charges.everything(self.ledger) | {"versions": resources.history(self.ledger)})

    def _faults(self, request: Request) -> Answer:
        strikes = _number(request.query, "strikes")
        return Answer(200, self.faults.shown(strikes=strikes, wait=_wait(request)))

    def _add_fault(self, request: Request) -> Answer:
        fault = Fault.read(request.json())
        self.faults.add(fault)
        return Answer(201, fault.shown())

    def _clear_faults(self, _: Request) -> Answer:
        self.faults.clear()
        return Answer(200, self.faults.shown())

    def _reset(self, _: Request) -> Answer:
        if not self.allow_reset:
            raise Refused(403, "reset_not_allowed", "This ledger is kept: --allow-reset was not given.")
        self.ledger.reset()
        return Answer(200, {"count": 0})

    def _see(self, subject: str, token: int | None) -> Callable[[], None]:
        if not self.modes.fencing:
            return _nothing
        return lambda: fencing.see(self.ledger, subject, token)


def _nothing() -> None:
    return


def _wait(request: Request) -> int:
    return min(_number(request.query, "wait"), LONGEST_WAIT)


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise Refused(400, "invalid", f"{name} must be a number.")
    return int(text)
