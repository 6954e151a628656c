"""Steps of a login that ask somebody else, such as a KDC that does not answer, in threads that nothing has to wait for.

They are no threads of a pool: a pool's are waited for when the process ends, and others need them meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

THREADS_MAX = 2  # whoever comes later waits for these, which ask the same KDC


class SlowSteps:
    def __init__(self) -> None:
        self._free = asyncio.Semaphore(THREADS_MAX)

    async def run(self, step: Callable[[], T]) -> T:
        """What the step returns or raises. A caller that is cancelled leaves its thread behind, which still counts."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, wrong: BaseException | None) -> None:
            self._free.release()
            if done.cancelled():
                return
            if wrong is None:
                done.set_result(result)  # type: ignore[arg-type]
            else:
                done.set_exception(wrong)

        def work() -> None:
            result: T | None = None
            wrong: BaseException | None = None
            try:
                result = step()
            except BaseException as raised:
                wrong = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed: the broker has stopped
                loop.call_soon_threadsafe(settle, result, wrong)

        try:
            Thread(target=work, name="moldau-login", daemon=True).start()
        except BaseException:  # no thread, which would have given its place back
            self._free.release()
            raise
        return await done
