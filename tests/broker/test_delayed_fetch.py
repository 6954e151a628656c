"""A parked Fetch is tried again when its partitions grow, and is nobody's burden once its connection is gone."""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections.abc import Set
from pathlib import Path

from moldau.broker.delayed_fetch import DelayedFetch
from moldau.broker.delayed_response import DelayedResponse
from moldau.replication.partition import Partition
from tests.coordinator.loops import on_a_loop
from tests.coordinator.partitions import new_partition

DAY_MS = 24 * 60 * 60 * 1000


def nothing(_: bool, __: Set[Partition] | None) -> None:
    return None


@on_a_loop
async def test_a_fetch_whose_connection_is_gone_watches_no_longer(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    parked = DelayedFetch([partition], nothing, missing_bytes=1_000_000, wait_ms_max=DAY_MS)
    told: list[DelayedResponse[object]] = []
    parked.answer.add_done_callback(told.append)
    parked.answer.cancel()
    assert (partition.watchers, told) == (set(), [parked.answer])
    assert parked.answer.cancelled()


@on_a_loop
async def test_an_answer_that_waits_for_the_disk_comes_when_the_disk_has_answered(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    warmed: DelayedResponse[str] = DelayedResponse()
    parked = DelayedFetch([partition], lambda *_: warmed, missing_bytes=1, wait_ms_max=1)
    heard: Future[str | None] = get_running_loop().create_future()
    parked.answer.add_done_callback(lambda later: heard.set_result(later.result()))
    loop = get_running_loop()
    loop.call_later(0.01, partition.disturb)
    loop.call_later(0.02, warmed.set_result, "cold")
    assert await heard == "cold"
    assert partition.watchers == set()
