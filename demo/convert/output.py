"""A file that has no name until it is whole."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# What a file system or kernel answers that cannot keep a file without a name.
_NO_NAMELESS_FILES = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT}


@dataclass(slots=True)
class Draft:
    """An open file on the target's file system; `publish` gives it the target's name."""

    fd: int
    target: Path
    part: Path  # the name beside the target that it takes on its way
    named: bool

    def publish(self) -> None:
        """Replace the target by this draft, in one step."""
        if not self.named:
            # A dir_fd makes Python call linkat, the only call that follows this link to the open file.
            os.link(f"/proc/self/fd/{self.fd}", self.part, src_dir_fd=self.fd, follow_symlinks=True)
            self.named = True
        self.part.replace(self.target)
        self.named = False


@contextmanager
def draft(target: Path) -> Iterator[Draft]:
    """Open a draft of the target; unless published, nothing is left of it.

    Where the system allows, the draft has no name at all, so that even SIGKILL
    of this process leaves nothing behind. Elsewhere a `.part` file would stay.
    """
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")
    fd, named = _nameless(target.parent), False
    if fd is None:
        fd, named = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), True
    opened = Draft(fd, target, part, named)
    try:
        yield opened
    finally:
        os.close(fd)
        if opened.named:
            part.unlink(missing_ok=True)


def _nameless(folder: Path) -> int | None:
    if not hasattr(os, "O_TMPFILE") or not Path("/proc/self/fd").is_dir():
        return None
    try:
        return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in _NO_NAMELESS_FILES:
            return None
        raise
