"""What is told of clients is written in slices, however many there are."""

from __future__ import annotations

import asyncio

from moldau.broker.metrics.clients import ClientCounts
from moldau.broker.metrics.metering import RequestCounts
from moldau.broker.metrics.writers.requests import write_clients
from moldau.coordinator.long_work import LongWork
from moldau.core.exposition import Exposition


def counts() -> RequestCounts:
    """Ids and errors that a client can make up."""
    row = RequestCounts("Fetch", "FetchConsumer", 17)
    for number in range(2_000):
        client = row.clients[f"client-{number}"] = ClientCounts()
        client.errors = dict.fromkeys(range(20), 5)
    return row


def test_others_have_their_turn_while_thousands_of_clients_are_told_of() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def scenario() -> str:
        task = asyncio.create_task(others())
        out = Exposition()
        await write_clients(out, [counts()], LongWork(), left_out=3)
        task.cancel()
        return out.text()

    text = asyncio.run(scenario())
    assert turns >= 4
    assert text.count("\nmoldau_client_requests_total{") == 40_000
    assert 'moldau_client_requests_total{client_id="client-7",request="Fetch",error="NONE"} 5\n' in text
    assert "moldau_clients_left_out_total 3\n" in text
