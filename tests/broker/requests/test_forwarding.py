"""Requests of clients on their way to the controller."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from moldau.broker.context import Peer
from moldau.broker.peers import Peers
from moldau.broker.requests.forwarding import Forwarding
from moldau.controller.image import BrokerImage, ClusterImage, Endpoint
from moldau.wire.codec import encode_parts
from moldau.wire.frame import response_parts
from moldau.wire.messages.envelope import EnvelopeResponse
from tests.coordinator.loops import on_a_loop
from tests.replication.test_channel import peer

ITSELF, CONTROLLER = 1, 2
CORRELATION = slice(4, 8)  # of a frame without its size
CLIENT = Peer("PLAINTEXT", "127.0.0.1", 1)


@on_a_loop
async def test_a_client_that_has_no_time_does_not_end_what_others_asked() -> None:
    asked: asyncio.Queue[bytes] = asyncio.Queue()
    may_answer = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while size := await reader.read(4):
            frame = await reader.readexactly(int.from_bytes(size, "big"))
            asked.put_nowait(frame)
            await may_answer.wait()
            correlation_id = int.from_bytes(frame[CORRELATION], "big")
            body = encode_parts(EnvelopeResponse(response_data=b"answer"), 0)
            writer.writelines(response_parts(correlation_id, body, is_flexible=True))

    async with peer(serve) as address:
        endpoints = {"PLAINTEXT": Endpoint(address.host, address.port)}
        image = ClusterImage(controller_id=CONTROLLER, brokers={CONTROLLER: BrokerImage(CONTROLLER, endpoints)})
        controller: Any = SimpleNamespace(is_active=False, image=image)
        peers = Peers(ITSELF, lambda: image, listener_name="PLAINTEXT")
        forwarding = Forwarding(ITSELF, controller, peers)
        hasty = asyncio.create_task(forwarding.relay(memoryview(b"hasty"), CLIENT, timeout_ms=200))
        await asyncio.wait_for(asked.get(), 10)
        patient = asyncio.create_task(forwarding.relay(memoryview(b"patient"), CLIENT, timeout_ms=20_000))
        assert await hasty is None
        may_answer.set()
        relayed = await patient
        assert relayed is not None
        assert bytes(relayed.frame) == b"answer"
        assert b"patient" in await asked.get()
        assert asked.empty(), "it was asked once"
        await peers.close()
