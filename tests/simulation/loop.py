"""An event loop whose time passes only when nothing is left to do, and which knows whose work it runs.

Everything happens in one order that depends on nothing but the program, so a seed replays a history exactly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any, Protocol


class Stage(Protocol):
    """A process of the simulated world whose callbacks are told apart, because it may die between any two of them."""

    def step(self, callback: Callable[..., Any], *args: Any) -> None: ...

    def tick(self, callback: Callable[..., Any], *args: Any) -> None: ...

    def adopt(self, task: asyncio.Task[Any]) -> None: ...


STAGE: ContextVar[Stage | None] = ContextVar("stage", default=None)


def elapsed_ms() -> int:
    """What a clock shows that nobody sets."""
    return int(asyncio.get_running_loop().time() * 1000)


class Stuck(Exception):
    """Nothing will ever happen again."""


class _TimePasses:
    """What a loop asks for news from the outside: there is none, and waiting takes no time."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout_s: float | None) -> list[Any]:
        if timeout_s is None:
            raise Stuck
        self._loop.now_s += timeout_s
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self._clock_resolution = 1e-9
        self._selector = _TimePasses(self)
        self.set_task_factory(_make_task)

    def time(self) -> float:
        return self.now_s

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Work for a thread is done at once: threads would run in another order every time."""
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as wrong:
            done.set_exception(wrong)
        return done

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no files or sockets."""

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        stage = STAGE.get() if context is None else context.get(STAGE)
        if stage is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(stage.step, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        stage = STAGE.get() if context is None else context.get(STAGE)
        if stage is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, stage.tick, callback, *args, context=context)


def _make_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
    stage = STAGE.get()
    if stage is not None:
        stage.adopt(task)
    return task
