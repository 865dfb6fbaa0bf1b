"""How gunicorn serves us: read as `gunicorn --config python:config.web config.wsgi:application`."""

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


def post_worker_init(worker: Any) -> None:
    """Let nobody wait, for work or for news, in a server that is stopping."""
    from jobs.api import waiting
    from jobs.api.room import ROOM

    ROOM.is_closing = waiting.is_closing = lambda: not worker.alive


def post_request(worker: Any, request: Any, environ: Any, answer: Any) -> None:
    """Tidy up once the answer has been sent."""
    garbage.tidy()
