"""What is on its way between brokers, clients and the store: late, held up, or lost with its connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import Any, Protocol, TypeAlias

from moldau.replication.channel import ChannelError, TimedOut, Unreachable

STORE, CLIENTS = -1, -2  # places that are no brokers
LATENCY_S = (0.0002, 0.0005, 0.001, 0.004)
SLOW_S = (0.05, 0.3)
TICK_S = 1e-6  # between two messages that must not change places

Serve: TypeAlias = Callable[[Any], Any]
Reply: TypeAlias = Callable[[Any], None]


class Server(Protocol):
    def receive(self, serve: Serve, reply: Reply) -> None: ...


class Connection:
    """What is sent over it arrives in that order, or not at all."""

    __slots__ = ("last_s",)

    def __init__(self) -> None:
        self.last_s = 0.0


class Network:
    def __init__(self, random: Random, outside: Context, *, loss: float, slow: float) -> None:
        self.is_calm = False
        self.server_of: Callable[[int], Server | None] = lambda _: None
        self._random = random
        self._outside = outside
        self._loss = loss
        self._slow = slow
        self._cut: dict[tuple[int, int], int] = {}  # by source and target: how many faults are in the way
        self._held: dict[tuple[int, int], list[tuple[Callable[[], None], Connection | None]]] = {}

    def cut(self, source: int, target: int) -> None:
        self._cut[source, target] = self._cut.get((source, target), 0) + 1

    def mend(self, source: int, target: int) -> None:
        """What is sent again by then arrives."""
        self._cut[source, target] -= 1
        if not self._cut[source, target]:
            del self._cut[source, target]
            for deliver, connection in self._held.pop((source, target), []):
                self._later(deliver, connection)

    def is_cut(self, source: int, target: int) -> bool:
        return (source, target) in self._cut

    def send(self, source: int, target: int, deliver: Callable[[], None], connection: Connection | None = None) -> None:
        if not self.is_cut(source, target):
            self._later(deliver, connection)
        elif self._random.random() < 0.5:
            self._held.setdefault((source, target), []).append((deliver, connection))

    def _later(self, deliver: Callable[[], None], connection: Connection | None) -> None:
        loop = asyncio.get_running_loop()
        is_slow = not self.is_calm and self._random.random() < self._slow
        at_s = loop.time() + self._random.choice(SLOW_S if is_slow else LATENCY_S)
        if connection is not None:
            at_s = connection.last_s = max(at_s, connection.last_s + TICK_S)
        loop.call_at(at_s, deliver, context=self._outside)

    async def ask(self, source: int, target: int, serve: Serve, *, timeout_s: float) -> Any:
        """The answer. ChannelError when there is none: the question may have been heard all the same."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        is_reset = not self.is_calm and self._random.random() < self._loss

        def arrive() -> None:
            server = self.server_of(target)
            if server is None:
                refuse(Unreachable(f"broker {target} refuses"))
            elif is_reset and self._random.random() < 0.5:
                refuse(Unreachable(f"the connection to broker {target} broke"))
            else:
                server.receive(serve, reply)

        def reply(response: Any) -> None:
            if is_reset:
                refuse(Unreachable(f"the connection to broker {target} broke"))
            elif isinstance(response, ChannelError):
                refuse(response)
            else:
                self.send(target, source, lambda: _settle(answer, response))

        def refuse(wrong: ChannelError) -> None:
            self.send(target, source, lambda: _fail(answer, wrong))

        self.send(source, target, arrive)
        patience = loop.call_later(timeout_s, _fail, answer, TimedOut(f"broker {target} did not answer in time"))
        try:
            return await answer
        finally:
            patience.cancel()


def _settle(answer: asyncio.Future[Any], response: Any) -> None:
    if not answer.done():
        answer.set_result(response)


def _fail(answer: asyncio.Future[Any], wrong: Exception) -> None:
    if not answer.done():
        answer.set_exception(wrong)
