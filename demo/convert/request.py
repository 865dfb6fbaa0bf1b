"""What the parent asks of the child, and the words of the child's answers."""

import json
from dataclasses import asdict, dataclass

from demo.convert.limits import Limits

# The child writes one JSON object a line, any number of PROGRESS and then one of the others.
PROGRESS, DONE, REFUSED, UNAVAILABLE = "progress", "done", "refused", "unavailable"


@dataclass(frozen=True, slots=True)
class Request:
    """One conversion, as the child sees it: open files instead of paths."""

    name: str
    kind: str
    to: str
    source_fd: int
    target_fd: int
    parent: int
    limits: Limits

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> "Request":
        fields = json.loads(text)
        return cls(**{**fields, "limits": Limits(**fields["limits"])})
