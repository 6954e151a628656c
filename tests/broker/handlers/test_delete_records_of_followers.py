"""DeleteRecords of a partition with followers is answered when those have deleted, too."""

from __future__ import annotations

import asyncio
from asyncio import Future
from pathlib import Path
from typing import Any

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.replication.partition import LeaderAndEpoch
from moldau.wire.api import ApiKey
from moldau.wire.messages import DeleteRecordsRequest, DeleteRecordsResponse
from moldau.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from tests.coordinator.loops import on_a_loop
from tests.log.samples import NOW_MS, batch
from tests.replication.replicated import ALICE, BOB, assigned, fetch
from tests.replication.replicated_broker import ReplicatedBroker

DAY_MS = 24 * 60 * 60 * 1000
HIGH_WATERMARK = -1


def with_ten(folder: Path, *, lone: tuple[str, ...] = ()) -> ReplicatedBroker:
    broker = ReplicatedBroker(folder, lone=lone)
    for _ in range(10):
        broker.orders.append(batch([b"v"]), now_ms=NOW_MS)
    broker.replicate("orders")
    return broker


def delete(broker: ReplicatedBroker, before: int, *, timeout_ms: int = DAY_MS) -> Any:
    """Of a partition that is there and one that is not."""
    partitions = [DeleteRecordsPartition(partition_index=index, offset=before) for index in (0, 7)]
    topic = DeleteRecordsTopic(name="orders", partitions=partitions)
    return broker.call(ApiKey.DELETE_RECORDS, DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms), 2)


def told(response: DeleteRecordsResponse) -> tuple[int, int]:
    """The error and the low watermark of the partition that is there."""
    found, missing = response.topics[0].partitions
    assert (missing.error_code, missing.low_watermark) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    return found.error_code, found.low_watermark


@on_a_loop
async def test_a_lone_replica_answers_at_once(tmp_path: Path) -> None:
    answer = delete(with_ten(tmp_path, lone=("orders",)), 5)
    # On a busy machine a slice may be over before the answer is shaped; nobody is waited for all the same.
    assert told(await answer if isinstance(answer, Future) else answer) == (ErrorCode.NONE, 5)


@on_a_loop
async def test_followers_have_to_delete_too(tmp_path: Path) -> None:
    broker = with_ten(tmp_path)
    answer = delete(broker, HIGH_WATERMARK)
    assert isinstance(answer, Future)
    assert broker.orders.log.log_start_offset == 10
    fetch(broker.orders, ALICE, 10, start=10)
    await asyncio.sleep(0.01)
    assert not answer.done()
    fetch(broker.orders, BOB, 10, start=10)
    assert told(await answer) == (ErrorCode.NONE, 10)


@on_a_loop
async def test_what_they_deleted_before_is_not_waited_for(tmp_path: Path) -> None:
    broker = with_ten(tmp_path)
    broker.orders.delete_records(Offset(5), now_ms=NOW_MS)
    for each in (ALICE, BOB):
        fetch(broker.orders, each, 10, start=5)
    assert told(delete(broker, 3)) == (ErrorCode.NONE, 5)


@on_a_loop
async def test_the_request_says_how_long_to_wait(tmp_path: Path) -> None:
    broker = with_ten(tmp_path)
    assert told(await delete(broker, 5, timeout_ms=1)) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert broker.orders.log.log_start_offset == 5, "the leader has deleted all the same"


@on_a_loop
async def test_a_leadership_that_is_lost_is_told(tmp_path: Path) -> None:
    broker = with_ten(tmp_path)
    answer = delete(broker, 5)
    broker.orders.lead(LeaderAndEpoch(ALICE, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    assert told(await answer) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


@on_a_loop
async def test_nothing_is_left_of_a_client_that_went_away(tmp_path: Path) -> None:
    broker = with_ten(tmp_path)
    answer = delete(broker, 5)
    await asyncio.sleep(0)
    answer.cancel()
    await asyncio.wait([answer])
    await asyncio.sleep(0)
    assert broker.orders.replicas is not None
    assert not broker.orders.replicas.low_watermark_watchers
    assert not broker.orders.commit_watchers
