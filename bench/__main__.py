"""`python -m bench`: measure, print, and keep the lines; `python -m bench report` writes docs/benchmarks.md.

python -m bench --peer pgqueuer                          everything, beside a peer, on both databases
python -m bench --only drain1,drain2 --database sqlite   some of it
python -m bench report [FILE]                            the newest run, or that one
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import machine, report
from bench.failed import ended
from bench.ground import GROUNDS
from bench.plan import MEASURES, Plan, carry_out
from bench.record import Record, read
from bench.sides import PEERS, product


def main(arguments: Sequence[str]) -> int:
    """Do what was asked for and return the exit code."""
    if arguments[:1] == ["report"]:
        options = report_parser().parse_args(arguments[1:])
        return ended(lambda: publish(options.file))
    options = run_parser().parse_args(arguments)
    return ended(lambda: measure(options, arguments))


def publish(file: Path | None) -> None:
    """Write the tables of a run into their page."""
    report.write(read(file))
    print(f"bench: {report.PAGE} written")


def measure(options: argparse.Namespace, arguments: Sequence[str]) -> None:
    """Carry the plan out and print its tables."""
    peer = PEERS[options.peer]() if options.peer else None
    ours = product()
    plan = Plan(options.database, options.only, options.rounds, options.n)
    record = Record.start(
        {
            "command": shlex.join(["python", "-m", "bench", *arguments]),
            "machine": machine.describe(),
            "rounds": plan.rounds,
            "sides": {side.name: side.note for side in (ours, peer) if side},
        }
    )
    carry_out(plan, ours, peer, record)
    print("\n" + report.tables(record.lines))
    print(f"bench: kept in {record.path}; `python -m bench report` writes {report.PAGE} from it")


def run_parser() -> argparse.ArgumentParser:
    """Return the parser of a run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        type=lambda text: _some_of(text, MEASURES),
        default=list(MEASURES),
        help=f"measures, comma-separated: {','.join(MEASURES)}",
    )
    parser.add_argument("--rounds", type=_positive, default=3, help="how often (default 3)")
    parser.add_argument("--n", type=_positive, default=20_000, help="jobs of a drain (default 20000)")
    parser.add_argument(
        "--database",
        type=lambda text: _some_of(text, tuple(GROUNDS)),
        default=list(GROUNDS),
        help="postgresql, sqlite or both (the default), comma-separated",
    )
    parser.add_argument("--peer", choices=sorted(PEERS), help="measure this one too, in turn, on PostgreSQL")
    return parser


def report_parser() -> argparse.ArgumentParser:
    """Return the parser of `report`."""
    parser = argparse.ArgumentParser(prog="python -m bench report")
    parser.add_argument("file", nargs="?", type=Path, help="a run in var/bench/; default: the newest")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _some_of(text: str, known: Sequence[str]) -> list[str]:
    """Return the words of a list in the order in which they are known."""
    words = {word.strip() for word in text.split(",")}
    if unknown := sorted(words - set(known)):
        raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {', '.join(known)}")
    return [name for name in known if name in words]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
