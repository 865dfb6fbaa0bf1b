"""What the figures were measured on: a number without its machine says nothing."""

import importlib.metadata
import os
import platform
import re
from pathlib import Path


def describe() -> dict[str, str]:
    """Return the machine and the versions, each as people would name it."""
    return {
        "cpu": _cpu(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{_memory_gib():.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "django": importlib.metadata.version("django"),
        "psycopg": importlib.metadata.version("psycopg"),
    }


def file_system(folder: Path) -> str:
    """Return the type of the file system that holds `folder`: in memory nothing is ever synced."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines():
        _, mount, found, *_ = line.split()
        if len(mount) >= len(best) and folder.resolve().is_relative_to(mount):
            best, kind = mount, found
    return kind


def _cpu() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text("utf-8", "replace"), re.M)
    return found[1] if found else platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
