"""Lets go of the connections to the database that a request broke over, however well they seem to be."""

from collections.abc import Callable

from django.db import connections
from django.http import HttpRequest, HttpResponse


class FreshConnectionMiddleware:
    """Closes this thread's connections after an answer of 500 or more.

    They are held for good, and Django keeps each that answers a query. One to a server that was demoted
    answers every query and refuses every write; without this it would do so until the process is restarted.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code >= 500:
            for connection in connections.all(initialized_only=True):
                if not connection.in_atomic_block:
                    connection.close()
        return response
