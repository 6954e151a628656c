"""Who runs a pipeline. A process id alone may mean another process: of another host, or one that came later."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

STARTED_FIELD = 19  # of /proc/PID/stat, counted after the command's name, which may hold anything


class NotOurs(Exception):
    """The process must not be signalled from here; the message says why."""


@dataclass(frozen=True, slots=True)
class Holder:
    """`started` is when the process began, in whatever words the system has for it."""

    pid: int
    host: str
    started: str | None

    def __str__(self) -> str:
        return f"process {self.pid}" if self.host == socket.gethostname() else f"process {self.pid} of {self.host}"

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    def terminate(self) -> None:
        """Raises NotOurs, and signals nobody, where the process is not the one that took the pipeline."""
        if self.host != socket.gethostname():
            raise NotOurs(f"it runs on {self.host} as process {self.pid}: stop it there")
        if self.started != started_of(self.pid):
            raise NotOurs(f"process {self.pid} is not the one that took the pipeline: it is left alone")
        os.kill(self.pid, signal.SIGTERM)


def this_process() -> Holder:
    return Holder(os.getpid(), socket.gethostname(), started_of(os.getpid()))


def holder_from(text: str) -> Holder | None:
    """None for what no process of this version wrote."""
    try:
        told = json.loads(text)
        return Holder(int(told["pid"]), str(told["host"]), told["started"])
    except (ValueError, KeyError, TypeError):
        return None


def started_of(pid: int) -> str | None:
    """None where there is no such process."""
    proc = Path("/proc")
    if (proc / "self" / "stat").exists():
        try:
            return (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[STARTED_FIELD]
        except (OSError, IndexError):
            return None
    told = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return told.stdout.strip() or None
