"""What load balancers and monitoring ask for."""

from django.http import HttpRequest, HttpResponse


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process serves requests."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer that the process serves requests."""
    return HttpResponse("ok\n", content_type="text/plain")


def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with no figures."""
    return HttpResponse("", content_type="text/plain; version=0.0.4")
