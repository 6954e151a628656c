"""A broker whose event loop notes for how long each of its turns kept the processor: what others wait for at most.

    python -m bench.watched_broker HOLDS start --port 0 ...        as `moldau start`; HOLDS is a file

It runs on asyncio's own loop, whose turns can be looked at, instead of uvloop's. The time is the processor time of the
loop's thread, so that other work on the machine counts for nothing. Threads that hold the interpreter's lock don't
count either: a prober sees them.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from asyncio import base_events, events
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import uvloop

from bench.brokers import answers, ours
from moldau.__main__ import run
from tests.apache_kafka import free_ports

COMMAND = "{python} -m bench.watched_broker {dir}/holds start --port {port} --data-dir {dir}/data --log-level WARNING"
NOTED_MS_MIN = 3.0


@dataclass(frozen=True, slots=True)
class Hold:
    """One turn of the loop."""

    ended_s: float
    cpu_ms: float
    gc_ms: float
    """Of the turn, how long it collected garbage."""
    callback_ms: float
    callback: str
    """The longest of that turn."""


def holds_in(path: Path, begun_s: float, ended_s: float) -> list[Hold]:
    """What was noted between two times of the monotonic clock, the longest first."""
    rows: Iterable[list[str]] = [line.split("\t") for line in path.read_text().splitlines()]
    holds = [Hold(float(at), float(cpu), float(gc_), float(longest), name) for at, cpu, gc_, longest, name in rows]
    return sorted((each for each in holds if begun_s <= each.ended_s <= ended_s), key=lambda each: -each.cpu_ms)


@dataclass(frozen=True, slots=True)
class Watched:
    """A broker in a process of its own, and what its loop noted."""

    address: tuple[str, int]
    holds: Path

    def longest(self, begun_s: float) -> Hold | None:
        """Since a time of the monotonic clock."""
        return next(iter(holds_in(self.holds, begun_s, time.monotonic())), None)


@contextmanager
def watched(folder: str, overrides: Mapping[str, object]) -> Iterator[Watched]:
    """With its data in a folder that a next one may begin with."""
    port = free_ports(1)[0]
    command = COMMAND + "".join(f" --override {key}={value}" for key, value in overrides.items())
    broker = ours(command, port, Path(folder))
    broker.start(answers)
    try:
        yield Watched(("127.0.0.1", port), Path(folder) / "holds")
    finally:
        broker.stop()


def described(hold: Hold | None) -> str:
    if hold is None:
        return f"below {NOTED_MS_MIN:.0f} ms |"
    return f"{hold.cpu_ms:.0f} ms | {hold.callback} {hold.callback_ms:.0f}, gc {hold.gc_ms:.0f}"


def watch(notes: TextIO) -> None:
    """Wrap a turn of the loop, and each callback in it."""
    turn: Any = base_events.BaseEventLoop
    handle: Any = events.Handle
    plain_turn: Callable[[Any], None] = turn._run_once
    plain_callback: Callable[[Any], None] = handle._run
    longest: list[Any] = [0.0, None]
    garbage: list[float] = [0.0, 0.0]

    def collect(phase: str, _: dict[str, Any]) -> None:
        now_s = time.thread_time()
        if phase == "start":
            garbage[1] = now_s
        elif threading.current_thread() is threading.main_thread():
            garbage[0] += now_s - garbage[1]

    def callback(self: Any) -> None:
        begun_s = time.thread_time()
        named = self._callback
        plain_callback(self)
        took_s = time.thread_time() - begun_s
        if took_s > longest[0]:
            longest[:] = took_s, named

    def one_turn(self: Any) -> None:
        longest[:] = 0.0, None
        garbage[0] = 0.0
        begun_s = time.thread_time()
        plain_turn(self)
        took_ms = (time.thread_time() - begun_s) * 1000
        if took_ms >= NOTED_MS_MIN:
            row = (time.monotonic(), took_ms, garbage[0] * 1000, longest[0] * 1000, _name(longest[1]))
            notes.write("{:.6f}\t{:.3f}\t{:.3f}\t{:.3f}\t{}\n".format(*row))

    gc.callbacks.append(collect)
    handle._run = callback
    turn._run_once = one_turn


def _name(callback: Any) -> str:
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        coroutine: Any = owner.get_coro()
        inner = coroutine
        while getattr(inner, "cr_await", None) is not None and hasattr(inner.cr_await, "cr_frame"):
            inner = inner.cr_await
        return str(getattr(inner, "__qualname__", inner))
    return str(getattr(callback, "__qualname__", callback))


def main() -> int:
    path, *arguments = sys.argv[1:]
    uvloop.run = asyncio.run  # type: ignore[assignment]
    with open(path, "w", buffering=1) as notes:
        watch(notes)
        return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
