"""`POST /leases/{attempt}/artefacts`: files of an attempt, stored under its id (contract §5, INV-5).

A file is the job's only through a result that names it, and only the committed attempt has one. An attempt
that lost its lease is refused before a byte is read and again before the file is stored; what slips between
lies in a folder that no result names, until `manage.py artefacts` removes it.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from typing import IO, Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.api import filters, limits, schema
from jobs.api.auth import Caller
from jobs.api.fields import parse_uuid
from jobs.api.paging import wrong
from jobs.api.presented import WorkerView, landed, suffix
from jobs.api.problems import Problem
from jobs.models import Attempt, Job
from jobs.outcomes import Lease

MOST_FILES = 100
CHUNK = 64 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


class Bytes(BaseParser):
    """Leaves the body where it is: it is read piece by piece."""

    media_type = "application/octet-stream"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> dict[str, Any]:
        """Return nothing: a session's CSRF check looks for its token among the members of a form."""
        return {}


class ArtefactsView(WorkerView):
    """`/leases/{attempt}/artefacts?name=…`: store a file; the same name again replaces it."""

    parser_classes = (Bytes,)
    queries = {"POST": {"name": schema.TEXT | {"pattern": f"^{_NAME.pattern}$"}}}
    needed = ("name",)
    answers = {
        "POST": {201: schema.record({"key": schema.TEXT, "bytes": schema.WHOLE, "sha256": schema.TEXT})}
    }

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        _check_body(request, limit=settings.INTERLOCK["ARTEFACT_BYTES"])
        APIView.initial(self, request, *args, **kwargs)

    def post(self, request: Request, attempt_id: str) -> Response:
        filters.unknown(request.query_params, ["name"])
        name = request.query_params.get("name", "")
        if not _NAME.fullmatch(name):
            raise wrong("name", _("letters, digits, dot, dash and underscore, at most 100"))
        lease = _lease(Caller.of(request), attempt_id)
        landed(Job.objects.runtime.may_stage(lease))
        folder = f"attempts/{lease.attempt_id}"
        key = f"{folder}/{name}"
        if not default_storage.exists(key) and _files(folder) >= MOST_FILES:
            raise Problem("refused", _("An attempt has at most %s files.") % MOST_FILES)
        with tempfile.TemporaryFile() as kept:
            size, digest = _receive(request, kept)
            landed(Job.objects.runtime.may_stage(lease))
            kept.seek(0)
            if default_storage.exists(key):
                default_storage.delete(key)
            if default_storage.save(key, File(kept)) != key:
                raise Problem("refused", _("Another upload of the same name is under way."))
        return Response({"key": key, "bytes": size, "sha256": digest}, status=201)


def _check_body(request: Request, *, limit: int) -> None:
    meta = request.META
    length = str(meta.get("CONTENT_LENGTH") or "")
    if not (length.isascii() and length.isdigit()) or "chunked" in meta.get("HTTP_TRANSFER_ENCODING", ""):
        raise Problem("length-required", _("Send the file with a Content-Length."))
    if len(length) > 18 or int(length) > limit:
        raise Problem("body-too-large", _("A file has at most %(limit)s bytes.") % {"limit": limit})
    limits.check_coding(meta)
    if meta.get("CONTENT_TYPE", "").strip().lower() != Bytes.media_type:
        raise Problem("unsupported-media-type", _("Send application/octet-stream."))


def _receive(request: Request, kept: IO[bytes]) -> tuple[int, str]:
    """Read the body into a file; returns its length and digest. Raises Problem where it ended too early."""
    stream, announced = request.stream, int(request.META["CONTENT_LENGTH"])
    digest, size = hashlib.sha256(), 0
    while stream is not None and size < announced:
        try:
            piece = stream.read(min(CHUNK, announced - size))
        except OSError:
            piece = b""
        if not piece:
            raise Problem("invalid-body", _("The body ended before its announced length."))
        digest.update(piece)
        size += len(piece)
        kept.write(piece)
    return size, digest.hexdigest()


def _lease(caller: Caller, attempt_id: str) -> Lease:
    """Return the lease of an attempt of one of the caller's workers; NotFound for any other."""
    key = parse_uuid(attempt_id)
    attempt = Attempt.objects.select_related("job").filter(pk=key).first() if key else None
    if attempt is None or not attempt.worker_id.endswith(suffix(caller)):
        raise NotFound
    job = attempt.job
    return Lease(
        job_id=job.pk.hex,
        attempt_id=attempt.pk.hex,
        generation=attempt.generation,
        worker_id=attempt.worker_id,
        epoch=attempt.scheduler_epoch,
        lease_expires_at=None,
        ttl_seconds=job.lease_seconds,
        # A cancel stops the commit; until then a file does no harm.
        cancel_generation=job.cancel_generation,
        revision=attempt.revision,
        input_digest=job.input_digest,
        kind=job.kind,
        queue=job.queue,
    )


def _files(folder: str) -> int:
    try:
        return len(default_storage.listdir(folder)[1])
    except FileNotFoundError:
        return 0
