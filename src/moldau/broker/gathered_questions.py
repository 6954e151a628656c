"""Questions to other brokers that are asked together: while one request is under way, the next questions gather."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from moldau.replication.channel_connection import ChannelError

QUESTIONS_MAX = 1_000  # of one request: some milliseconds at the other end

Q = TypeVar("Q")
A = TypeVar("A")


class GatheredQuestions(Generic[Q, A]):
    """One request at a time to each broker; without any question there is no task."""

    def __init__(self, ask: Callable[[int, Sequence[Q]], Awaitable[Sequence[A]]], *, failed: A) -> None:
        """`ask` gives one answer for each question, in their order; `failed` is the answer where it can't."""
        self._ask = ask
        self._failed = failed
        self._waiting: dict[int, list[tuple[Q, Future[A]]]] = {}
        self._askers: dict[int, asyncio.Task[None]] = {}

    def put(self, broker_id: int, question: Q) -> Future[A]:
        loop = asyncio.get_running_loop()
        answer: Future[A] = loop.create_future()
        self._waiting.setdefault(broker_id, []).append((question, answer))
        if broker_id not in self._askers:
            self._askers[broker_id] = loop.create_task(self._run(broker_id), name=f"questions to broker {broker_id}")
        return answer

    async def close(self) -> None:
        askers = [*self._askers.values()]
        for asker in askers:
            asker.cancel()
        await asyncio.gather(*askers, return_exceptions=True)
        # One that was cancelled before its first turn has told nobody.
        for _, answer in [each for waiting in self._waiting.values() for each in waiting]:
            _tell(answer, self._failed)

    async def _run(self, broker_id: int) -> None:
        waiting = self._waiting[broker_id]
        try:
            while waiting:
                some, waiting[:] = waiting[:QUESTIONS_MAX], waiting[QUESTIONS_MAX:]
                try:
                    await self._ask_some(broker_id, some)
                finally:
                    for _, answer in some:
                        _tell(answer, self._failed)
        finally:
            del self._askers[broker_id], self._waiting[broker_id]
            for _, answer in waiting:
                _tell(answer, self._failed)

    async def _ask_some(self, broker_id: int, some: list[tuple[Q, Future[A]]]) -> None:
        try:
            answers = await self._ask(broker_id, [question for question, _ in some])
        except ChannelError:
            return
        for (_, answer), told in zip(some, answers, strict=True):
            _tell(answer, told)


def _tell(answer: Future[A], told: A) -> None:
    if not answer.done():  # whoever asked may be gone
        answer.set_result(told)
