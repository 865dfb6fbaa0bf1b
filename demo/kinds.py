"""The demonstration's kinds of work. Found by name: every installed app may have a `kinds` module."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from demo import convert as converter
from demo import store
from demo.billing import kinds as billing  # noqa: F401  (imported, they are registered)
from jobs import errors
from jobs.context import Context, Fail
from jobs.handlers import job
from jobs.retry import Backoff

for _code in converter.Code:
    errors.register(_code.value, errors.Family.CONTENT, meaning="The document cannot be converted as it is.")
for _trouble in converter.Trouble:
    errors.register(
        _trouble.value,
        errors.Family.INFRA,
        retryable=True,
        meaning="The converter could not do its work; the document may be fine.",
    )


@job(
    "documents.convert",
    queue="documents",
    lease=60,
    timeout=120,
    max_attempts=3,
    backoff=Backoff(base=2, cap=60),
    label="{name} to {to}",
    tags=("document",),
    search=("name", "to"),
    owner="demonstration",
    runbook="docs/demo.md",
)
def convert(ctx: Context, source: str, to: str = "html", name: str = "") -> dict[str, Any]:
    """Convert a stored document and return where its result is and what it says about itself.

    `source` is a storage key; `name` is what people call the file. Whatever is wrong with the document
    ends the job `failed` with a CONTENT code and one plain sentence; trouble of the machine is retried.
    """
    shown = name or Path(source).name
    ctx.log(f"converting {shown} to {to}")

    def stop() -> bool:
        ctx.checkpoint()
        return False

    with tempfile.TemporaryDirectory(prefix="interlock-") as folder, store.local_copy(source) as path:
        target = Path(folder, Path(shown).stem + converter.TARGETS.get(to, ""))
        try:
            summary = converter.convert_file(
                path,
                target,
                to,
                should_stop=stop,
                on_progress=lambda done, total: ctx.progress(done, total, "bytes read"),
            )
        except (converter.ConversionRefused, converter.ConverterUnavailable) as refused:
            raise Fail(refused.code.value, refused.message) from None
        ctx.checkpoint()
        key = ctx.attempt_path(store.safe_name(target.name))
        store.keep_result(target, key)
    for note in summary.notes:
        ctx.log(note)
    return {"file": key, **asdict(summary), "source": shown, "seconds": round(summary.seconds, 3)}
