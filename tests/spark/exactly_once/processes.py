"""The processes of a Spark: its driver, and the Python workers below it or below the executors of a cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

PROJECT = Path(__file__).parents[3]
END_S_MAX = 60.0


class Driver:
    """A run of `job.py`; what it started dies with it, or follows when it sees the end of its driver."""

    def __init__(self, job: dict[str, Any], *, output: IO[bytes]) -> None:
        command = [sys.executable, "-m", "tests.spark.exactly_once.job", json.dumps(job)]
        self.process = subprocess.Popen(
            command,
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def exit_code(self) -> int | None:
        return self.process.poll()

    def kill(self) -> None:
        """Python and the JVM at once, as if the machine had gone."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(END_S_MAX)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self.kill()


def parents() -> dict[int, int]:
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                # The name of the program stands in brackets and may hold anything, so count from its end.
                found[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def descendants(roots: Iterable[int]) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for child, parent in parents().items():
        children.setdefault(parent, []).append(child)
    waiting = list(roots)
    while waiting:
        below = children.get(waiting.pop(), [])
        yield from below
        waiting += below


def words_of(pid: int) -> list[str]:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_text().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def task_workers(roots: Iterable[int]) -> list[int]:
    """Python workers that run tasks: forked by a daemon that does nothing else, they look like it."""
    daemons = {pid for pid in descendants(roots) if words_of(pid)[1:4] == ["-m", "pyspark.daemon", "pyspark.worker"]}
    above = parents()
    return sorted(pid for pid in daemons if above.get(pid) in daemons)
