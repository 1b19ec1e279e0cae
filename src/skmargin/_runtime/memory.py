"""How much memory is free, as far as the system says."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def free_memory() -> int | None:
    """Bytes that this process may still use without swapping, or None where the system does not say.

    The least of what the machine, the limits of the process and its control group leave.
    """
    return min((found for found in (_machine(), _limits(), _group()) if found is not None), default=None)


def _machine() -> int | None:
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as file:
        for row in file:
            if row.startswith("MemAvailable:"):
                return int(row.split()[1]) * 1024
    with suppress(AttributeError, ValueError, OSError):
        return int(os.sysconf("SC_AVPHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    return None


def _limits() -> int | None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        used = Path("/proc/self/statm").read_text(encoding="ascii").split()
        page = resource.getpagesize()
        left = []
        for limit, place in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
            most = resource.getrlimit(limit)[0]
            if most != resource.RLIM_INFINITY:
                left.append(max(0, most - int(used[place]) * page))
        return min(left, default=None)
    return None


def _group() -> int | None:
    root = Path("/sys/fs/cgroup")
    for limit, used in (
        (root / "memory.max", root / "memory.current"),
        (root / "memory" / "memory.limit_in_bytes", root / "memory" / "memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):
            most = limit.read_text(encoding="ascii").strip()
            return None if most == "max" else max(0, int(most) - int(used.read_text(encoding="ascii")))
    return None
