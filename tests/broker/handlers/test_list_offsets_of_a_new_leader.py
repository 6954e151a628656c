"""The end of a partition does not go back when a leader comes that does not know yet what is committed."""

from __future__ import annotations

from asyncio import Future
from pathlib import Path

import pytest

from moldau.core.errors import ErrorCode
from moldau.replication.partition import LeaderAndEpoch
from moldau.wire.api import ApiKey
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.coordinator.loops import on_a_loop
from tests.log.samples import NOW_MS
from tests.replication.replicated import ALICE, LEADER, assigned
from tests.replication.replicated_broker import ReplicatedBroker

LATEST, EARLIEST = -1, -2
CONSUMER, DEBUGGING_CONSUMER = -1, -2


async def ask(
    broker: ReplicatedBroker, timestamp: int, version: int = 7, *, replica_id: int = CONSUMER
) -> tuple[int, int]:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=replica_id, topics=[ListOffsetsTopic("orders", [wanted])])
    answer = broker.call(ApiKey.LIST_OFFSETS, request, version)
    if isinstance(answer, Future):  # it took long
        answer = await answer
    ((found,),) = [topic.partitions for topic in answer.topics]
    return found.error_code, found.offset


@pytest.mark.parametrize(
    ("version", "error"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
@on_a_loop
async def test_the_end_is_not_told_before_it_is_known(tmp_path: Path, version: int, error: ErrorCode) -> None:
    broker = ReplicatedBroker(tmp_path)
    broker.produce(acks=1)
    assert await ask(broker, LATEST, version) == (ErrorCode.NONE, 0)
    broker.orders.lead(LeaderAndEpoch(LEADER, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    assert await ask(broker, LATEST, version) == await ask(broker, NOW_MS, version) == (error, -1)
    assert await ask(broker, EARLIEST, version) == (ErrorCode.NONE, 0)
    broker.replicate("orders")
    assert await ask(broker, LATEST, version) == (ErrorCode.NONE, 1)
    assert await ask(broker, NOW_MS, version) == (ErrorCode.NONE, 0)


@on_a_loop
async def test_a_follower_hears_where_the_log_ends(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path)
    broker.produce(acks=1)
    assert await ask(broker, LATEST, replica_id=ALICE) == (ErrorCode.NONE, 1)
    broker.orders.lead(LeaderAndEpoch(LEADER, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    assert await ask(broker, LATEST, replica_id=ALICE) == (ErrorCode.NONE, 1)
    broker.orders.lead(LeaderAndEpoch(ALICE, 2), None, now_ms=NOW_MS)
    assert await ask(broker, LATEST, replica_id=ALICE) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert await ask(broker, LATEST, replica_id=DEBUGGING_CONSUMER) == (ErrorCode.NONE, 1)
