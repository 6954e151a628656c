"""One request to one broker of a cluster, whoever leads or controls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from moldau.embedded import Address, EmbeddedBroker
from moldau.replication.channel import BrokerChannel
from moldau.wire.schema import Message

TIMEOUT_MS = 30_000
LOOK_S = 0.05


def ask(broker: EmbeddedBroker, request: Message, version: int) -> Any:
    return ask_address(broker.address, request, version)


def ask_address(address: Address, request: Message, version: int) -> Any:
    async def asked() -> Any:
        channel = BrokerChannel(0, lambda _: address, client_id="test", on_unreachable=lambda _: None)
        try:
            return await channel.ask(request, version, timeout_ms=TIMEOUT_MS)
        finally:
            await channel.close()

    return asyncio.run(asked())


def until(is_so: Callable[[], bool], otherwise: str = "it never came", *, timeout_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s, otherwise
        time.sleep(LOOK_S)
