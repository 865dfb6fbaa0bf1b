"""HTTP around the service: bounded in every direction, one answer for each connection."""

import contextlib
import socket
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from demo.provider.api import Service
from demo.provider.message import BODY_BYTES, Answer, Refused, Request

CONNECTIONS = 100
IDLE_SECONDS = 10.0
# What is still read of a body that is too long, so that its sender gets to read why.
DRAINED_BYTES = 1024 * 1024


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, service: Service) -> None:
        self.service = service
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://[{host!s}]:{port}/" if ":" in str(host) else f"http://{host!s}:{port}/"

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks the name service who we are and may wait for it.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            # Nothing is done and the sender is told nothing: what it makes of that is its own affair.
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say in one line what went wrong; a client that went away is nothing to speak of."""
        error = sys.exception()
        if not isinstance(error, OSError):
            sys.stderr.write(f"provider: {type(error).__name__}: {error}\n")


class Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "provider"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS

    def do_POST(self) -> None:
        """Answer one request, whatever its method, and close the connection."""
        self.close_connection = True
        try:
            request = self._request()
        except Refused as refusal:
            self._say(refusal.answer)
            return
        if request is None:  # the client went away in the middle of its body
            return
        try:
            answer = self.server.service.answer(request)
        except Exception as error:  # noqa: BLE001
            # The boundary: a client gets a sentence, whatever happened, and the service lives on.
            self.log_error("%s %s: %r", request.method, request.path, error)
            answer = Answer(500, {"code": "internal", "message": "The provider failed."})
        if answer is not None:
            self._say(answer)

    do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815 - the library finds them by these names

    def _request(self) -> Request | None:
        length = self._length()
        body = self.rfile.read(length)
        if len(body) < length:
            return None
        try:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=20))
        except ValueError:
            raise Refused(400, "invalid", "The address cannot be read.") from None
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(self.command, parts.path, query, headers, body)

    def _length(self) -> int:
        given = self.headers.get("Content-Length", "" if self.command in ("POST", "PUT") else "0")
        if "Transfer-Encoding" in self.headers or not given:
            raise Refused(411, "length_required", "Content-Length must say how long the body is.")
        if not (given.isascii() and given.isdigit() and len(given) < 19):
            raise Refused(400, "invalid", "Content-Length must be a number.")
        if int(given) > BODY_BYTES:
            self.rfile.read(min(int(given), DRAINED_BYTES))
            raise Refused(413, "too_large", f"A body may have {BODY_BYTES} bytes.")
        return int(given)

    def _say(self, answer: Answer) -> None:
        body = answer.encoded()
        with contextlib.suppress(OSError):  # nobody listens any more
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no HTTP, in our own form instead of the library's page."""
        self.close_connection = True
        # A request whose version could not be read counts as HTTP/0.9, which would have no status line.
        self.request_version = self.protocol_version
        self._say(Answer(code, {"code": "bad_request", "message": "This request cannot be understood."}))

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Stay silent about requests: the ledger is the record."""
