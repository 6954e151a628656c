"""How a Python worker of Spark is kept from waiting for nothing, and from taking a part of its rows for all of them."""

from __future__ import annotations

import gc
import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

Rows = TypeVar("Rows")

QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux has it
DESCRIPTORS = "/proc/self/fd"
PYTHON = "moldau-python"


def worker_python() -> str:
    """What PYSPARK_PYTHON is best set to: this environment, by the script that starts faster."""
    script = Path(sys.executable).with_name(PYTHON)
    return str(script) if script.exists() else sys.executable


@lru_cache(maxsize=1)
def spare_what_is_loaded() -> None:
    """Keep the modules that are loaded by now out of every later look for garbage.

    Spark looks for garbage after each task. With Arrow and a client library loaded that takes some 30 ms, as much as
    everything else that a small task does, and never finds anything in them.
    """
    gc.freeze()


class ArrivesInWorkers:
    """What Spark sends to its Python workers, to be run there.

    Spark writes to a worker in small pieces and leaves Nagle's algorithm on, so the piece after this object waits until
    the worker's kernel acknowledges it, which that puts off for 40 ms. Acknowledging at once halves a small task.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        acknowledge_at_once()


def acknowledge_at_once() -> None:
    if QUICK_ACK is None:
        return
    with suppress(OSError):  # without /proc there is nothing to gain
        for name in os.listdir(DESCRIPTORS):
            _set(int(name), QUICK_ACK)


def _set(descriptor: int, option: int) -> None:
    with suppress(OSError):
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return
        with socket.socket(fileno=os.dup(descriptor)) as worker:
            if worker.type == socket.SOCK_STREAM and worker.family in (socket.AF_INET, socket.AF_INET6):
                worker.setsockopt(socket.IPPROTO_TCP, option, 1)


class InputCut(RuntimeError):
    """Spark ended a task in the middle of its rows: it failed elsewhere, or was cancelled."""


def whole(rows: Iterator[Rows]) -> Iterator[Rows]:
    """The rows of a task, which end in InputCut where Spark ended them.

    Arrow takes the end of a socket for the end of the rows. After those, and nowhere else, Spark sends one word more.
    """
    yield from rows
    sent = _input()
    if sent is not None and not sent.peek(1):
        raise InputCut("Spark ended this task before it had all of its rows")


def _input() -> Any:
    """What Spark's process sends to this worker; None where a test calls."""
    frame = sys._getframe()
    while (outer := frame.f_back) is not None:
        frame = outer
        found = frame.f_locals.get("infile")
        if frame.f_code.co_name == "main" and hasattr(found, "peek"):
            return found
    return None
