"""The first batch of a transaction to a partition waits until the coordinator's addition of it is committed."""

from __future__ import annotations

import asyncio
from asyncio import Future, get_running_loop
from pathlib import Path
from typing import Any

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from moldau.log.partition_log import PartitionLog
from moldau.replication.partition import LeaderAndEpoch
from moldau.transactions.markers_due import MarkersDue
from moldau.transactions.transaction import ProducerIdAndEpoch
from moldau.wire.api import ApiKey
from moldau.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinator.loops import on_a_loop
from tests.log.samples import NOW_MS
from tests.replication.replicated import LEADER, assigned, replicated
from tests.replication.replicated_broker import NAME, ORDERS, ReplicatedBroker, row, some_turns, until

LONE = ("orders", GROUP_METADATA_TOPIC)


def abort(producer: ProducerIdAndEpoch) -> MarkersDue:
    return MarkersDue(NAME, producer, False, frozenset({ORDERS}), 0)


def commit_offsets(broker: ReplicatedBroker, producer: ProducerIdAndEpoch) -> Any:
    request = TxnOffsetCommitRequest(
        transactional_id=NAME,
        group_id="readers",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic("orders", [TxnOffsetCommitRequestPartition(0, committed_offset=5)])],
    )
    return broker.call(ApiKey.TXN_OFFSET_COMMIT, request, 5)


@on_a_loop
async def test_it_waits_for_the_replicas_of_the_coordinator(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    producer = await broker.begin()
    answer = broker.produce(producer=producer)
    await some_turns()
    assert (answer.done(), broker.orders.log.end_offset) == (False, 0)
    broker.replicate(TRANSACTION_STATE_TOPIC)
    assert row(await answer).error_code == ErrorCode.NONE
    assert (broker.orders.log.end_offset, broker.orders.last_stable_offset) == (1, 0)
    assert not broker.orders.log.producers.guards
    assert row(broker.produce(producer=producer, sequence=1)).base_offset == 1, "the next one needs nobody"
    await broker.stop()


@on_a_loop
async def test_a_request_that_is_given_up_before_it_began_guards_nothing(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    producer = await broker.begin()
    answer = broker.produce(producer=producer)
    assert broker.orders.log.producers.guards
    answer.cancel()
    await some_turns()
    assert not broker.orders.log.producers.guards
    await broker.stop()


@on_a_loop
async def test_it_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.broker.handlers.produce.ADMISSION_S_MAX", 0.05)
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    answer = broker.produce(producer=await broker.begin())
    assert row(await answer).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert broker.orders.log.end_offset == 0
    await broker.stop()


@on_a_loop
async def test_it_waits_for_the_disk_of_a_lone_coordinator(tmp_path: Path) -> None:
    """It heard CONCURRENT_TRANSACTIONS, which it had to try again after."""
    broker = ReplicatedBroker(tmp_path, lone=(*LONE, TRANSACTION_STATE_TOPIC))
    producer = await broker.begin()
    log = broker.partitions[TRANSACTION_STATE_TOPIC].log
    log.update_config(log.config.override({"flush.messages": "1"}))
    synced: Future[None] = get_running_loop().create_future()

    def flush(_: PartitionLog) -> Future[None]:
        return synced

    broker.flush = flush
    answer = broker.produce(producer=producer)
    await some_turns()
    assert (answer.done(), broker.orders.log.end_offset) == (False, 0)
    log.flush()
    synced.set_result(None)
    assert row(await answer).error_code == ErrorCode.NONE
    await broker.stop()


@on_a_loop
async def test_a_marker_that_comes_before_the_answer_makes_it_void(tmp_path: Path) -> None:
    """Else the batch would open a transaction again that nobody ends."""
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    producer = await broker.begin()
    answer = broker.produce(producer=producer)
    assert broker.markers.write(ORDERS, abort(producer), 0) is ErrorCode.NONE
    broker.replicate(TRANSACTION_STATE_TOPIC)
    refused = row(await answer)
    assert (refused.error_code, refused.base_offset) == (ErrorCode.INVALID_TXN_STATE, -1)
    assert (broker.orders.log.end_offset, broker.orders.last_stable_offset) == (1, 1)
    assert not broker.orders.log.producers.guards
    await broker.stop()


@on_a_loop
async def test_a_marker_of_another_producer_does_not(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    producer = await broker.begin()
    answer = broker.produce(producer=producer)
    assert broker.markers.write(ORDERS, abort(ProducerIdAndEpoch(7, 0)), 0) is ErrorCode.NONE
    broker.replicate(TRANSACTION_STATE_TOPIC)
    assert row(await answer).error_code == ErrorCode.NONE
    await broker.stop()


@on_a_loop
async def test_a_coordinator_that_moves_on_is_asked_again(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    producer = await broker.begin()
    answer = broker.produce(producer=producer)
    broker.partitions[TRANSACTION_STATE_TOPIC].retire()
    refused = row(await answer)
    assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS, "which producers try again after"
    assert broker.orders.log.end_offset == 0
    await broker.stop()


@on_a_loop
async def test_verification_of_older_clients_waits_for_what_it_relies_on(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    producer = await broker.begin()
    added = broker.transactions.admit(NAME, producer, frozenset({ORDERS}), adds=True)
    assert isinstance(added, Future)
    answer = broker.produce(producer=producer, version=11)
    await some_turns()
    assert (answer.done(), broker.orders.log.end_offset) == (False, 0)
    broker.replicate(TRANSACTION_STATE_TOPIC)
    assert await added == {ORDERS: ErrorCode.NONE}
    assert row(await answer).error_code == ErrorCode.NONE
    await broker.stop()


@on_a_loop
async def test_offsets_wait_too(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    producer = await broker.begin()
    offsets = broker.partitions[GROUP_METADATA_TOPIC]
    answer = commit_offsets(broker, producer)
    await some_turns()
    assert (answer.done(), offsets.log.end_offset) == (False, 0)
    broker.replicate(TRANSACTION_STATE_TOPIC)
    ((committed,),) = [topic.partitions for topic in (await answer).topics]
    assert (committed.error_code, offsets.log.end_offset) == (ErrorCode.NONE, 1)
    await broker.stop()


@on_a_loop
async def test_offsets_do_not_enter_a_partition_that_was_made_anew_meanwhile(tmp_path: Path) -> None:
    """It left this broker and came back: the marker that ended the transaction may have come between."""
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    answer = commit_offsets(broker, await broker.begin())
    before = broker.partitions[GROUP_METADATA_TOPIC]
    again = broker.partitions[GROUP_METADATA_TOPIC] = replicated(tmp_path / "again", topic=GROUP_METADATA_TOPIC)
    broker.replicate(TRANSACTION_STATE_TOPIC)
    ((refused,),) = [topic.partitions for topic in (await answer).topics]
    assert (refused.error_code, again.log.end_offset) == (ErrorCode.INVALID_TXN_STATE, 0)
    assert not before.log.producers.guards
    await broker.stop()


@on_a_loop
async def test_offsets_do_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.broker.handlers.txn_offset_commit.ADMISSION_S_MAX", 0.05)
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    answer = commit_offsets(broker, await broker.begin())
    async with asyncio.timeout(60):
        response = await answer
    assert response.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not broker.partitions[GROUP_METADATA_TOPIC].log.producers.guards
    await broker.stop()


@on_a_loop
async def test_offsets_of_a_transaction_that_ended_meanwhile_are_refused(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    producer = await broker.begin()
    offsets = broker.partitions[GROUP_METADATA_TOPIC]
    answer = commit_offsets(broker, producer)
    where = ORDERS._replace(topic=GROUP_METADATA_TOPIC)
    assert broker.markers.write(where, abort(producer), 0) is ErrorCode.NONE
    broker.replicate(TRANSACTION_STATE_TOPIC)
    ((refused,),) = [topic.partitions for topic in (await answer).topics]
    assert (refused.error_code, offsets.log.end_offset) == (ErrorCode.INVALID_TXN_STATE, 1)
    await broker.stop()


@pytest.mark.parametrize("topic", ["orders", GROUP_METADATA_TOPIC])
@on_a_loop
async def test_a_marker_is_done_when_it_is_committed(tmp_path: Path, topic: str) -> None:
    broker = ReplicatedBroker(tmp_path)
    answer = broker.markers.write(ORDERS._replace(topic=topic), abort(ProducerIdAndEpoch(7, 0)), 0)
    assert isinstance(answer, Future)
    await some_turns()
    assert not answer.done()
    broker.replicate(topic)
    assert await answer is ErrorCode.NONE
    await broker.stop()


@on_a_loop
async def test_a_transaction_is_complete_when_its_markers_are_committed(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path, lone=(GROUP_METADATA_TOPIC,))
    producer = await broker.begin()
    assert row(await broker.while_replicating(broker.produce(producer=producer))).error_code == ErrorCode.NONE
    shards = broker.transactions.shards()
    assert not isinstance(shards, ErrorCode)
    transactions = shards[0].transactions
    due = asyncio.ensure_future(broker.end(producer))
    await until(lambda: broker.orders.log.end_offset == 2, lambda: broker.replicate(TRANSACTION_STATE_TOPIC))
    assert await due is ErrorCode.NONE
    for _ in range(20):
        broker.replicate(TRANSACTION_STATE_TOPIC)
        await asyncio.sleep(0)
    assert (transactions[NAME].is_prepared, broker.orders.last_stable_offset) == (True, 0)
    await until(lambda: not transactions[NAME].is_prepared, broker.replicate)
    assert broker.orders.last_stable_offset == 2
    await broker.stop()


@on_a_loop
async def test_markers_of_one_transaction_do_not_wait_for_the_replicas_of_another(tmp_path: Path) -> None:
    """The first one's partition has no follower that fetches; the second one's is lone."""
    broker = ReplicatedBroker(tmp_path, lone=(GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC))
    stuck, other = await broker.begin(), await broker.begin("other")
    broker.produce(producer=stuck, acks=1)
    assert await broker.end(stuck) is ErrorCode.NONE
    offsets = ORDERS._replace(topic=GROUP_METADATA_TOPIC)
    assert broker.transactions.admit("other", other, frozenset({offsets}), adds=True) == {offsets: ErrorCode.NONE}
    assert await broker.end(other, "other") is ErrorCode.NONE
    shards = broker.transactions.shards()
    assert not isinstance(shards, ErrorCode)
    transactions = shards[0].transactions
    await until(lambda: not transactions["other"].is_prepared)
    assert transactions[NAME].is_prepared
    await until(lambda: not transactions[NAME].is_prepared, broker.replicate)
    await broker.stop()


@on_a_loop
async def test_a_coordinator_with_too_few_replicas_keeps_its_state_and_goes_on_when_there_are_enough(
    tmp_path: Path,
) -> None:
    broker = ReplicatedBroker(tmp_path, lone=LONE)
    producer = await broker.begin()
    added = broker.transactions.admit(NAME, producer, frozenset({ORDERS}), adds=True)
    assert isinstance(added, Future)
    await broker.while_replicating(added)
    shards = broker.transactions.shards()
    state = broker.partitions[TRANSACTION_STATE_TOPIC]
    state.lead(LeaderAndEpoch(LEADER, 0), assigned(LEADER, partition_epoch=1), now_ms=NOW_MS)
    assert await broker.end(producer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert broker.transactions.shards() == shards, "nothing was thrown away"
    state.lead(LeaderAndEpoch(LEADER, 0), assigned(partition_epoch=2), now_ms=NOW_MS)
    ending = asyncio.ensure_future(broker.end(producer))
    assert await broker.while_replicating(ending) is ErrorCode.NONE
    await broker.stop()


@on_a_loop
async def test_a_transaction_is_completed_once_its_coordinator_can_note_it(tmp_path: Path) -> None:
    """Its markers are written once, however long that takes."""
    broker = ReplicatedBroker(tmp_path, lone=(GROUP_METADATA_TOPIC,))
    producer = await broker.begin()
    assert row(await broker.while_replicating(broker.produce(producer=producer))).error_code == ErrorCode.NONE
    ending = asyncio.ensure_future(broker.end(producer))
    await until(lambda: broker.orders.log.end_offset == 2, lambda: broker.replicate(TRANSACTION_STATE_TOPIC))
    assert await ending is ErrorCode.NONE
    shards = broker.transactions.shards()
    assert not isinstance(shards, ErrorCode)
    state = broker.partitions[TRANSACTION_STATE_TOPIC]
    state.lead(LeaderAndEpoch(LEADER, 0), assigned(LEADER, partition_epoch=1), now_ms=NOW_MS)
    broker.replicate("orders")
    await some_turns()
    assert shards[0].transactions[NAME].is_prepared
    state.lead(LeaderAndEpoch(LEADER, 0), assigned(partition_epoch=2), now_ms=NOW_MS)
    while shards[0].transactions[NAME].is_prepared:
        broker.replicate()
        await asyncio.sleep(0.01)
    assert broker.orders.log.end_offset == 2
    await broker.stop()
