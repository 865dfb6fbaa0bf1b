"""Two kinds that do nothing but say that they ran."""

from bench import marks
from jobs.handlers import job

QUEUE = "bench"


@job("bench.noop", queue=QUEUE)
def noop(seq: int) -> None:
    """Count one run."""
    marks.hit()


@job("bench.pickup", queue=QUEUE)
def pickup(seq: int) -> None:
    """Note when this run began."""
    marks.began(seq)
