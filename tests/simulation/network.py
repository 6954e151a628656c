"""Requests on their way: late, lost before or after they were served, or served long after nobody waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from moldau.broker.context import Services
from tests.simulation.node import Node

REQUEST_S_MAX = 30.0
HUNG_UP = object()  # instead of an answer: the other side is gone


class Lost(Exception):
    """The connection broke; whether the request was served nobody knows."""


class Reachable(Protocol):
    random: Random
    is_calm: bool

    @property
    def node(self) -> Node | None: ...


class Network:
    def __init__(self, world: Reachable, *, loss: float) -> None:
        self._world = world
        self._random = world.random
        self._loss = loss

    async def call(
        self, serve: Callable[[Services], Any], *, lingers: bool = False, wait_s_max: float = REQUEST_S_MAX
    ) -> Any:
        """The answer, or Lost. A request that `lingers` may be served after its sender has given it up."""
        await asyncio.sleep(self._delay_s())
        node = self._world.node
        if node is None or self._is_unlucky():
            await asyncio.sleep(self._delay_s())
            raise Lost
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if lingers and self._is_unlucky():
            asyncio.get_running_loop().call_later(self._random.choice([0.05, 1, 8]), _arrive, node, serve, answer)
            raise Lost
        node.receive(serve, answer)
        patience = asyncio.get_running_loop().call_later(wait_s_max, _hang_up, answer)
        try:
            reply = await answer
        finally:
            patience.cancel()
        await asyncio.sleep(self._delay_s())
        if reply is HUNG_UP or self._is_unlucky():
            raise Lost
        return reply

    def _delay_s(self) -> float:
        return self._random.choice([0.0, 0.001, 0.002, 0.005, 0.02])

    def _is_unlucky(self) -> bool:
        return not self._world.is_calm and self._random.random() < self._loss


def _hang_up(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_result(HUNG_UP)


def _arrive(node: Node, serve: Callable[[Services], Any], answer: asyncio.Future[Any]) -> None:
    """Over the connection of then: if that process is gone, so is the request."""
    if not node.is_dead:
        node.receive(serve, answer)
    else:
        answer.cancel()
