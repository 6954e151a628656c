"""An answer that comes later and is told at once.

An asyncio Future calls back on the next turn of the loop; for a long poll that turn is a good part of its latency.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError, Future
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Answer = TypeVar("Answer")


class DelayedResponse(Generic[Answer]):
    """The part of a Future that a connection uses, for one listener."""

    __slots__ = ("_answer", "_failure", "_is_done", "_on_cancel", "_tell")

    def __init__(self, on_cancel: Callable[[], None] | None = None) -> None:
        """`on_cancel` is told when nobody wants the answer any more, so that nobody goes on waiting to give it."""
        self._is_done = False
        self._on_cancel = on_cancel
        self._answer: Answer | None = None
        self._failure: BaseException | None = None
        self._tell: Callable[[DelayedResponse[Answer]], None] | None = None

    def done(self) -> bool:
        return self._is_done

    def add_done_callback(self, tell: Callable[[DelayedResponse[Answer]], None]) -> None:
        assert self._tell is None, "an answer has one listener"
        self._tell = tell

    def result(self) -> Answer | None:
        if self._failure is not None:
            raise self._failure
        return self._answer

    def exception(self) -> BaseException | None:
        return self._failure

    def cancelled(self) -> bool:
        return isinstance(self._failure, CancelledError)

    def cancel(self) -> None:
        if not self._is_done:
            on_cancel = self._on_cancel
            self.set_exception(CancelledError())
            if on_cancel is not None:
                on_cancel()

    def set_exception(self, failure: BaseException) -> None:
        if not self._is_done:
            self._failure = failure
            self._finish()

    def set_result(self, answer: Answer) -> None:
        if not self._is_done:
            self._answer = answer
            self._finish()

    def follow(self, other: DelayedResponse[Answer] | Future[Answer]) -> None:
        """Have the other's result or failure, as soon as it has one."""
        other.add_done_callback(self._take_over)

    def _take_over(self, other: DelayedResponse[Answer] | Future[Answer]) -> None:
        if other.cancelled():
            self.cancel()
        elif (failure := other.exception()) is not None:
            self.set_exception(failure)
        else:
            self.set_result(other.result())  # type: ignore[arg-type]

    def _finish(self) -> None:
        self._is_done = True
        tell, self._tell, self._on_cancel = self._tell, None, None  # they lead back here, a cycle that would stay
        if tell is not None:
            tell(self)


def future_of(later: DelayedResponse[Any]) -> Future[Any]:
    """For a coroutine that waits for it; whoever gives the future up gives the response up."""
    future: Future[Any] = asyncio.get_running_loop().create_future()

    def tell(_: object) -> None:
        if not future.done():
            failure = later.exception()
            future.set_result(later.result()) if failure is None else future.set_exception(failure)

    def abandon(_: object) -> None:
        if future.cancelled():
            later.cancel()

    if later.done():
        tell(later)
    else:
        later.add_done_callback(tell)
        future.add_done_callback(abandon)
    return future
