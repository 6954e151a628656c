"""A parked Fetch is tried again when its partitions grow, and is nobody's burden once its connection is gone."""

from __future__ import annotations

from asyncio import Future, ensure_future, get_running_loop, sleep
from collections.abc import Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.context import Context, Peer
from moldau.broker.fetching.cold_reads import ColdReads
from moldau.broker.fetching.delayed_fetch import DelayedFetch
from moldau.broker.fetching.fetch_sessions import Plan, Wanted
from moldau.broker.fetching.reading import Reading, Terms
from moldau.broker.handlers.fetch import _fetch_many
from moldau.broker.requests.delayed_response import DelayedResponse
from moldau.coordinator.long_work import LongWork
from moldau.replication.partition import Partition
from moldau.wire.api import ApiKey
from moldau.wire.batch import Record, build_batch
from moldau.wire.frame import RequestHeader
from moldau.wire.messages import FetchRequest
from moldau.wire.messages.fetch import FetchPartition
from tests.coordinator.loops import on_a_loop
from tests.coordinator.partitions import new_partition

DAY_MS = 24 * 60 * 60 * 1000


def nothing(_: bool, __: Set[Partition] | None) -> None:
    return None


@on_a_loop
async def test_a_fetch_whose_connection_is_gone_watches_no_longer(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    parked = DelayedFetch([partition.commit_watchers], nothing, missing_bytes=1_000_000, wait_ms_max=DAY_MS)
    told: list[DelayedResponse[object]] = []
    parked.answer.add_done_callback(told.append)
    parked.answer.cancel()
    assert (partition.commit_watchers, told) == ({}, [parked.answer])
    assert parked.answer.cancelled()


@on_a_loop
async def test_an_answer_that_waits_for_the_disk_comes_when_the_disk_has_answered(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    warmed: DelayedResponse[str] = DelayedResponse()
    parked = DelayedFetch([partition.commit_watchers], lambda *_: warmed, missing_bytes=1, wait_ms_max=1)
    heard: Future[str | None] = get_running_loop().create_future()
    parked.answer.add_done_callback(lambda later: heard.set_result(later.result()))
    loop = get_running_loop()
    loop.call_later(0.01, partition.disturb)
    loop.call_later(0.02, warmed.set_result, "cold")
    assert await heard == "cold"
    assert partition.commit_watchers == {}


@pytest.mark.parametrize("batches", [2, 3])
@on_a_loop
async def test_a_fetch_of_many_that_waits_for_much_is_not_tried_for_each_record(tmp_path: Path, batches: int) -> None:
    partition, batch = new_partition(tmp_path), build_batch([Record(0, 0, b"key", b"value")])
    wanted = Wanted(partition.topic, FetchPartition(partition=0, partition_max_bytes=1 << 20))
    wanted.partition = partition
    terms = Terms(12, 1 << 20, batches * len(batch), read_committed=False, changes_only=False)
    with closing(ColdReads()) as cold_reads, ThreadPoolExecutor(1) as computing:
        services: Any = SimpleNamespace(
            authorization=None,
            partitions=None,
            long_work=LongWork(),
            cold_reads=cold_reads,
            computing=computing,
            metering=None,
        )
        context = Context(services, RequestHeader(ApiKey.FETCH, 12, 1, "app"), Peer("PLAINTEXT", "127.0.0.1", 1))
        plan, reading = Plan({(partition.topic, 0): wanted}), Reading(terms.bytes_max)
        asked = FetchRequest(max_wait_ms=DAY_MS)
        answer = ensure_future(_fetch_many(asked, plan, [wanted], reading, terms=terms, context=context))
        while not partition.commit_watchers:  # noqa: ASYNC110 - nobody tells of it
            await sleep(0)
        watching = dict(partition.commit_watchers)
        for _ in range(batches - 1):
            partition.append_own(memoryview(bytearray(batch)), now_ms=0)
            for _ in range(10):
                await sleep(0)
            assert partition.commit_watchers == watching, "it goes on waiting for the rest"
        partition.append_own(memoryview(bytearray(batch)), now_ms=0)
        await answer
    assert partition.commit_watchers == {}
