from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.node.garbage import COLLECTION_S_MAX, keep_collections_short
from moldau.node.running import Running
from moldau.node.server import serve
from moldau.wire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    JoinGroupRequest,
)
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.fetch import FetchPartition, FetchTopic
from moldau.wire.messages.join_group import JoinGroupRequestProtocol
from tests.differential.batches import batch
from tests.hostile.attacker import CLOSED, Address, Attacker, framed
from tests.hostile.siege import produce_request

FETCH, PRODUCE, JOIN = 7, 7, 3
LONG_MS = 60_000
ROUNDS = 3


@pytest.fixture
def collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    callbacks = list(gc.callbacks)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks
    gc.unfreeze()


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize(("takes_s", "is_set_aside"), [(COLLECTION_S_MAX / 2, False), (COLLECTION_S_MAX * 2, True)])
def test_what_survives_a_long_collection_is_set_aside(takes_s: float, is_set_aside: bool) -> None:
    gc.unfreeze()
    ticks = count()
    keep_collections_short(lambda: next(ticks) * takes_s)
    gc.collect(1)
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert (gc.get_freeze_count() > 0) is is_set_aside


def fetch(wait_ms: int) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    topics = [FetchTopic(topic="orders", partitions=[wanted])]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, session_epoch=-1, topics=topics)


def join() -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="readers",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=LONG_MS,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def use(address: Address) -> None:
    """A topic's life, and requests that wait: to their end, until they are answered, and given up by their client."""
    topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
    records = batch([b"one"], timestamp=int(time.time() * 1000))
    with Attacker(address) as client, Attacker(address) as parked, Attacker(address) as member:
        created = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=LONG_MS), 7)
        assert created.topics[0].error_code == ErrorCode.NONE
        client.ask(fetch(wait_ms=10), FETCH)
        with Attacker(address) as gone:
            gone.tell(fetch(wait_ms=LONG_MS), FETCH)
            client.ask(ApiVersionsRequest(), 0)
        parked.tell(fetch(wait_ms=LONG_MS), FETCH)
        client.ask(ApiVersionsRequest(), 0)
        client.ask(produce_request("orders", records), PRODUCE)
        parked.answer_to(FetchRequest, FETCH)
        member.tell(join(), JOIN)
        client.ask(ApiVersionsRequest(), 0)
        client.ask(DeleteTopicsRequest(topic_names=["orders"], timeout_ms=LONG_MS), 2)
        client.send(framed(bytes.fromhex("7fff0000") + bytes(8)))
        assert client.answer() == CLOSED


async def used_broker(data: Path) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    async def use_it(running: Running) -> None:
        try:
            for _ in range(ROUNDS):
                await asyncio.to_thread(use, (running.listeners[0].host, running.listeners[0].port))
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
        finally:
            gc.set_debug(0)
            stop.set()

    tasks = []

    def announce(running: Running) -> None:
        gc.collect()
        tasks.append(loop.create_task(use_it(running)))

    static = {"node.id": "1", "log.dirs": str(data), "listeners": "PLAINTEXT://127.0.0.1:0"}
    await serve(BrokerConfig.of(static), announce=announce, stop=stop)
    await tasks[0]


@pytest.mark.usefixtures("collector")
def test_requests_and_topics_leave_no_cycles_behind(tmp_path: Path) -> None:
    """What is alive when survivors are set aside and becomes a cycle's part afterwards would stay for ever."""
    switch_s = sys.getswitchinterval()
    gc.disable()
    try:
        asyncio.run(used_broker(tmp_path))
        left = [type(each) for each in gc.garbage if type(each).__module__.startswith("moldau.")]
    finally:
        gc.enable()
        gc.garbage.clear()
        sys.setswitchinterval(switch_s)
    assert left == []
