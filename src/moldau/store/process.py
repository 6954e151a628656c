"""Whether the process that wrote something is still the one that has its number."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple


class ProcessId(NamedTuple):
    """Numbers are reused; a number and a start time are not, within one boot of a machine and one container.

    The start is 0, and boot and namespace are empty, where the system does not tell them.
    """

    pid: int
    started: int
    boot: str = ""
    namespace: str = ""


def this_process() -> ProcessId:
    pid = os.getpid()
    return ProcessId(pid, _started(pid) or 0, _boot(), _namespace())


def is_gone(process: ProcessId) -> bool:
    """Whether it has ended for certain. A process of another machine or container can't be looked at from here."""
    return process.boot in ("", _boot()) and process.namespace in ("", _namespace()) and not is_alive(process)


def is_of_another_boot(process: ProcessId) -> bool:
    """For a process that is known to have run on this machine: it ended when the machine did."""
    return process.boot not in ("", _boot())


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


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@cache
def _namespace() -> str:
    """A container counts its processes on its own: its 7 is not the machine's 7."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
