"""What is told is written in slices, and whoever is slow keeps nobody else from being told of."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from moldau.broker.context import Services
from moldau.broker.metrics.clients import ClientCounts
from moldau.broker.metrics.metering import Metering, RequestCounts
from moldau.broker.metrics.writers import directories
from moldau.broker.metrics.writers.directories import DirectoriesWriter, Room
from moldau.broker.metrics.writers.requests import write_clients
from moldau.broker.metrics.writers.topics import write_topics
from moldau.coordinator.long_work import LongWork
from moldau.core.exposition import Exposition
from moldau.replication.traffic import Traffic


def counts() -> RequestCounts:
    """Ids and errors that a client can make up."""
    row = RequestCounts("Fetch", "FetchConsumer", 17)
    for number in range(2_000):
        client = row.clients[f"client-{number}"] = ClientCounts()
        client.errors = dict.fromkeys(range(20), 5)
    return row


def written(write: Callable[[Exposition], Awaitable[None]]) -> tuple[str, int]:
    """The page, and how many turns others had meanwhile."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def scenario() -> str:
        task = asyncio.create_task(others())
        out = Exposition()
        await write(out)
        task.cancel()
        return out.text()

    return asyncio.run(scenario()), turns


def test_others_have_their_turn_while_thousands_of_clients_are_told_of() -> None:
    text, turns = written(lambda out: write_clients(out, [counts()], LongWork(), left_out=3))
    assert turns >= 4
    assert text.count("\nmoldau_client_requests_total{") == 40_000
    assert 'moldau_client_requests_total{client_id="client-7",request="Fetch",error="NONE"} 5\n' in text
    assert "moldau_clients_left_out_total 3\n" in text


def test_others_have_their_turn_while_thousands_of_topics_are_told_of() -> None:
    """20,000 of them held the loop for 100 ms."""
    traffic = Traffic()
    traffic.gone.messages_in = 3
    for number in range(5_000):
        traffic.of(f"topic-{number}").messages_in = 2
    traffic.of("unused")
    metering = cast("Metering", SimpleNamespace(traffic=traffic, forget_topics=lambda: None))
    text, turns = written(lambda out: write_topics(metering, LongWork(), out))
    assert turns >= 4
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    assert f'\n{name}{{topic="topic-4999"}} 2\n' in text
    assert f"\n{name} 10003\n" in text
    assert "unused" not in text


def test_a_disk_that_does_not_answer_takes_its_own_figures_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing was told any more of the whole broker, for as long as the disk took."""
    answers, asked = threading.Event(), []

    def hung(paths: Sequence[Path]) -> Room:
        asked.append(paths)
        answers.wait(20)
        return [(paths[0], 7, 5)]

    monkeypatch.setattr(directories, "room_of", hung)
    monkeypatch.setattr(directories, "ROOM_S_MAX", 0.02)

    async def scenario(executor: ThreadPoolExecutor) -> list[str]:
        found = SimpleNamespace(paths=[tmp_path], failures={})
        writer = DirectoriesWriter(cast("Services", SimpleNamespace(directories=found, executor=executor)))
        texts = []
        for number in range(3):
            if number == 2:
                answers.set()
                monkeypatch.setattr(directories, "ROOM_S_MAX", 20)
            pages = [Exposition(), Exposition()]
            await asyncio.gather(*map(writer, pages))
            texts += [each.text() for each in pages]
        return texts

    with ThreadPoolExecutor(4) as executor:
        texts = asyncio.run(scenario(executor))
    assert all("kafka_log_logmanager_offlinelogdirectorycount 0\n" in each for each in texts)
    assert ["free_bytes" in each for each in texts] == [False] * 4 + [True] * 2
    assert len(asked) == 1
