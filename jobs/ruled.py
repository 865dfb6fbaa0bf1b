"""The result that a ruling gave a job whose run was uncertain as a whole (contract §5, uncertain)."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from jobs.borrowed import closing
from jobs.effect_kinds import IMPLICIT
from jobs.models import EffectSlot
from jobs.outcomes import Lease
from jobs.status import EffectStatus

if TYPE_CHECKING:
    from jobs.worker.held import Held


@dataclass(frozen=True, slots=True)
class Ruled:
    """What a person said that came of a whole run."""

    value: Any


def result(lease: Lease, *, using: str) -> Ruled | None:
    """Return the result that a ruling gave a job whose run was uncertain as a whole, or None.

    Asked only where the generation has grown beyond the attempts: by a recovery or a resolution.
    """
    found = (
        EffectSlot.objects.using(using)
        .filter(
            job_id=uuid.UUID(lease.job_id),
            revision=lease.revision,
            kind=IMPLICIT,
            status=EffectStatus.COMMITTED,
        )
        .values_list("response", flat=True)
        .first()
    )
    return None if found is None else Ruled(json.loads(found))


async def result_async(held: Held) -> Ruled | None:
    """The same from the event loop, where no database may be asked."""
    import asyncio

    return await asyncio.to_thread(closing, partial(result, held.lease, using=held.using))
