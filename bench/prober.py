"""A client beside others that asks for ApiVersions, again and again, and notes how long each answer took."""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from moldau.wire.messages import ApiVersionsRequest
from tests.hostile.attacker import Address, Attacker, frame

PAUSE_S = 0.001  # between two probes: a busy loop of them would be a load of its own
SETTLE_S = 0.3


@dataclass(frozen=True, slots=True)
class Answers:
    """Of one deed."""

    count: int
    longest_ms: float


def probe(address: Address, request: bytes, pipe: Connection) -> None:
    """Ask without end; tell the figures since the last time whenever somebody wants them."""
    client = Attacker(address, wait_s=300)
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    count, longest_s = 0, 0.0
    while True:
        begun = time.perf_counter()
        client.send(request)
        client.answer()
        longest_s = max(longest_s, time.perf_counter() - begun)
        count += 1
        if pipe.poll():
            if not pipe.recv():
                return
            pipe.send(Answers(count, longest_s * 1000))
            count, longest_s = 0, 0.0
        time.sleep(PAUSE_S)


class Prober:
    """A process of its own; `during` is what it saw while a deed was done."""

    def __init__(self, address: Address) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(
            target=probe, args=(address, frame(ApiVersionsRequest(), 0), theirs), daemon=True
        )
        self._process.start()

    def __enter__(self) -> Prober:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(False)
        self._process.join()

    def figures(self) -> Answers:
        self._pipe.send(True)
        seen: Answers = self._pipe.recv()
        return seen

    def during(self, deed: Callable[[], None]) -> tuple[float, Answers]:
        time.sleep(SETTLE_S)
        self.figures()
        begun = time.perf_counter()
        deed()
        took_s = time.perf_counter() - begun
        time.sleep(SETTLE_S)
        return took_s, self.figures()
