"""One process of the simulated cluster: it may stop and go on, or end between any two of its callbacks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from random import Random
from typing import Any

from tests.simulation.loop import STAGE, VirtualLoop

THREAD_S = (0.0, 0.0005, 0.004, 0.02)  # what a thread may take for what the loop hands it


class ClusterLoop(VirtualLoop):
    """Work for threads is done after a while, and not at all by a process that has ended by then."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random

    def _write_to_self(self) -> None:
        """There is no other thread."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        if STAGE.get() is None:
            return super().run_in_executor(executor, func, *args)
        done: asyncio.Future[Any] = self.create_future()
        self.call_later(self._random.choice(THREAD_S), _work, done, func, args)
        return done


def _work(done: asyncio.Future[Any], func: Any, args: Any) -> None:
    """Who gave up waiting for a thread does not keep it from working."""
    try:
        result = func(*args)
    except Exception as wrong:
        if not done.done():
            done.set_exception(wrong)
    else:
        if not done.done():
            done.set_result(result)


class Process:
    """Everything that is begun in its context belongs to it."""

    def __init__(self) -> None:
        self.is_dead = False
        self.context: Context = copy_context()
        self.context.run(STAGE.set, self)
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._missed: list[tuple[Context, Callable[..., Any], tuple[Any, ...]]] | None = None

    @property
    def is_stopped(self) -> bool:
        return self._missed is not None

    def step(self, callback: Callable[..., Any], *args: Any) -> None:
        """A callback of this process; one that is dead unwinds, which nobody outside can see."""
        if self._missed is None:
            callback(*args)
        else:
            self._missed.append((copy_context(), callback, args))

    def tick(self, callback: Callable[..., Any], *args: Any) -> None:
        if not self.is_dead:
            self.step(callback, *args)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        self._tasks[task] = None
        task.add_done_callback(self._forget, context=self.context)
        if self.is_dead:
            task.cancel()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        self.context.run(_create_task, work)

    def stop_for_now(self) -> None:
        """SIGSTOP."""
        if self._missed is None:
            self._missed = []

    def go_on(self) -> None:
        """SIGCONT: all that it missed comes at once."""
        missed, self._missed = self._missed or [], None
        loop = asyncio.get_running_loop()
        for context, callback, args in missed:
            loop.call_soon(callback, *args, context=context)

    def end(self) -> None:
        """kill -9."""
        self.is_dead = True
        self.go_on()
        for task in [*self._tasks]:
            task.cancel()


def _create_task(work: Coroutine[Any, Any, Any]) -> None:
    asyncio.get_running_loop().create_task(work)
