"""A coordinator whose broker has just become the leader: it knows its log's end before it knows what is committed."""

from __future__ import annotations

import asyncio
from asyncio import Future
from pathlib import Path

from moldau.core.errors import ErrorCode
from moldau.core.topic_names import TRANSACTION_STATE_TOPIC
from moldau.replication.partition import LeaderAndEpoch
from moldau.transactions.shard import TransactionShard
from tests.coordinator.loops import on_a_loop
from tests.log.samples import NOW_MS
from tests.replication.replicated import LEADER, assigned
from tests.replication.replicated_broker import NAME, ORDERS, ReplicatedBroker, some_turns, until


async def loaded(broker: ReplicatedBroker) -> TransactionShard:
    broker.transactions.resume()
    await until(lambda: not isinstance(broker.transactions.shards(), ErrorCode))
    shards = broker.transactions.shards()
    assert not isinstance(shards, ErrorCode)
    return shards[0]


@on_a_loop
async def test_it_loads_to_the_logs_end_and_replies_when_that_is_committed(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path)
    producer = await broker.begin()
    state = broker.partitions[TRANSACTION_STATE_TOPIC]
    lost = broker.transactions.admit(NAME, producer, frozenset({ORDERS}), adds=True)
    assert isinstance(lost, Future)
    state.lead(LeaderAndEpoch(LEADER, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    assert await lost == {ORDERS: ErrorCode.NOT_COORDINATOR}
    assert state.high_watermark < state.log.end_offset
    shard = await loaded(broker)
    assert shard.transactions[NAME].partitions == {ORDERS}, "it is in the log, so it was decided"
    asked = broker.transactions.admit(NAME, producer, frozenset({ORDERS}), adds=False)
    assert isinstance(asked, Future)
    await some_turns()
    assert not asked.done(), "another leader may come and not have it"
    broker.replicate(TRANSACTION_STATE_TOPIC)
    assert await asked == {ORDERS: ErrorCode.NONE}
    await broker.stop()


@on_a_loop
async def test_no_marker_is_written_for_an_outcome_that_is_not_committed(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path, lone=("orders",))
    producer = await broker.begin()
    added = broker.transactions.admit(NAME, producer, frozenset({ORDERS}), adds=True)
    assert isinstance(added, Future)
    await broker.while_replicating(added)
    ending = asyncio.ensure_future(broker.end(producer))
    await some_turns()
    state = broker.partitions[TRANSACTION_STATE_TOPIC]
    state.lead(LeaderAndEpoch(LEADER, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    assert await ending is ErrorCode.NOT_COORDINATOR
    shard = await loaded(broker)
    await some_turns()
    assert (shard.transactions[NAME].is_prepared, broker.orders.log.end_offset) == (True, 0)
    await until(lambda: broker.orders.log.end_offset == 1, broker.replicate)
    await broker.stop()
