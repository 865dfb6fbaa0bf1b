"""How gunicorn serves us: read as `gunicorn --config python:config.web config.wsgi:application`."""

import socket
import struct
from typing import Any

from config import garbage, settings

bind = f"{settings.WEB_HOST}:{settings.WEB_PORT}"
workers = settings.WEB_PROCESSES
worker_class = "gthread"
threads = settings.WEB_THREADS
# Above the longest wait for SQLite's write lock, so that it ends in an answer and not in a killed process.
timeout = 60
graceful_timeout = 20
logconfig_dict = settings.LOGGING
proc_name = "interlock-web"
# It would lie in the home folder of whoever runs us, one for all installations.
control_socket_disable = True


STALLED_SECONDS = 20
"""How long a client may be silent in the middle of a request, or take nothing of its answer."""


def when_ready(server: Any) -> None:
    """Let no client that has stalled keep a thread: some machines that vanish would stop the server."""
    for listener in server.LISTENERS:
        bound(listener.sock, STALLED_SECONDS)


def bound(listener: socket.socket, seconds: float) -> None:
    """Bound every wait on the connections that a socket will accept: they inherit it, as Linux has it."""
    whole, part = divmod(seconds, 1)
    limit = struct.pack("ll", int(whole), int(part * 1_000_000))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        listener.setsockopt(socket.SOL_SOCKET, option, limit)


def post_worker_init(worker: Any) -> None:
    """Let nobody wait, for work or for news, in a server that is stopping."""
    from jobs.api import waiting
    from jobs.api.room import ROOM

    ROOM.is_closing = waiting.is_closing = lambda: not worker.alive


def post_request(worker: Any, request: Any, environ: Any, answer: Any) -> None:
    """Tidy up once the answer has been sent."""
    garbage.tidy()
