"""Whether the process that wrote something is still the one that has its number."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class ProcessId(NamedTuple):
    """Numbers are reused; a number and a start time are not. The start is 0 where the system does not tell it."""

    pid: int
    started: int


def this_process() -> ProcessId:
    pid = os.getpid()
    return ProcessId(pid, _started(pid) or 0)


def is_alive(process: ProcessId) -> bool:
    started = _started(process.pid)
    if started is not None:
        return started == process.started
    if Path("/proc/self/stat").exists():
        return False
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _started(pid: int) -> int | None:
    """Linux: field 22 of stat, in ticks since boot. The command before it may contain blanks and brackets."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    # A zombie has ended; it only waits for its parent to notice.
    return None if fields[0] in "ZX" else int(fields[19])
