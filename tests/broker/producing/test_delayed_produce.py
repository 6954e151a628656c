"""Produce to a partition with followers: who is answered when, and with what."""

from __future__ import annotations

from asyncio import Future
from pathlib import Path

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.replication.partition import LeaderAndEpoch
from moldau.wire.messages import ProduceResponse
from tests.coordinator.loops import on_a_loop
from tests.log.samples import NOW_MS, batch
from tests.replication.replicated import ALICE, BOB, LEADER, assigned, fetch, fetch_all, replicated
from tests.replication.replicated_broker import ReplicatedBroker, row, some_turns


@on_a_loop
async def test_acks_all_is_answered_when_all_in_sync_have_it(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path)
    answer = broker.produce(b"a", b"b")
    assert isinstance(answer, Future)
    fetch(broker.orders, ALICE, 2)
    await some_turns()
    assert not answer.done()
    fetch(broker.orders, BOB, 2)
    stored = row(await answer)
    assert (stored.error_code, stored.base_offset) == (ErrorCode.NONE, 0)


@on_a_loop
async def test_a_lone_replica_and_acks_1_are_answered_at_once(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path / "a")
    assert isinstance(broker.produce(acks=1), ProduceResponse)
    assert broker.produce(acks=0) is None
    lone = ReplicatedBroker(tmp_path / "b", lone=("orders",))
    assert isinstance(lone.produce(), ProduceResponse)
    assert (broker.orders.high_watermark, lone.orders.high_watermark) == (0, 1)


@on_a_loop
async def test_too_late_is_a_time_out_although_the_records_are_there(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path)
    stored = row(await broker.produce(timeout_ms=1))
    assert (stored.error_code, stored.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert broker.orders.log.end_offset == 1
    assert not broker.orders.commit_watchers


@on_a_loop
async def test_too_few_in_sync_take_no_records_for_all(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path)
    broker.orders.lead(LeaderAndEpoch(LEADER, 0), assigned(LEADER, partition_epoch=1), now_ms=NOW_MS)
    refused = row(broker.produce())
    assert (refused.error_code, refused.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
    assert "is insufficient to satisfy the min.isr requirement of 2" in (refused.error_message or "")
    assert broker.orders.log.end_offset == 0
    assert row(broker.produce(acks=1)).error_code == ErrorCode.NONE


@on_a_loop
async def test_who_waits_hears_who_leads_instead(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path)
    answer = broker.produce()
    broker.orders.lead(LeaderAndEpoch(ALICE, 3), assigned(partition_epoch=1), now_ms=NOW_MS)
    moved = row(await answer)
    assert moved.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (moved.current_leader.leader_id, moved.current_leader.leader_epoch) == (ALICE, 3)


@on_a_loop
async def test_a_retry_waits_for_what_it_repeats(tmp_path: Path) -> None:
    broker = ReplicatedBroker(tmp_path)
    producer = await broker.begin()
    first = broker.produce(producer=producer)
    broker.replicate("__transaction_state")
    await some_turns()
    assert broker.orders.log.end_offset == 1
    again = broker.produce(producer=producer)
    assert isinstance(again, Future)
    assert not first.done()
    broker.replicate("orders")
    assert row(await first).base_offset == row(await again).base_offset == 0
    assert broker.orders.log.end_offset == 1
    await broker.stop()


@on_a_loop
async def test_records_that_went_while_a_coordinator_was_asked_are_not_acknowledged(tmp_path: Path) -> None:
    """Others stand at their offsets, and are committed, when the leader leads again before the coordinator answers."""
    broker = ReplicatedBroker(tmp_path)
    other = broker.partitions["other"] = replicated(tmp_path / "other", topic="other")
    producer = await broker.begin()
    answer = broker.produce_with_another("other", producer)
    assert (broker.orders.log.end_offset, other.log.end_offset) == (0, 1), "the coordinator was not heard yet"
    other.lead(LeaderAndEpoch(ALICE, 1), assigned(ALICE, BOB, partition_epoch=1), now_ms=NOW_MS)
    other.truncate_to(Offset(0), now_ms=NOW_MS)
    other.log.append_as_follower(batch([b"of another leader"], leader_epoch=1), now_ms=NOW_MS)
    other.lead(LeaderAndEpoch(LEADER, 2), assigned(partition_epoch=3), now_ms=NOW_MS)
    fetch_all(other)
    assert other.high_watermark == 1
    response = await broker.while_replicating(answer)
    errors = {topic.name: topic.partition_responses[0].error_code for topic in response.responses}
    assert errors == {"orders": ErrorCode.NONE, "other": ErrorCode.NOT_LEADER_OR_FOLLOWER}
    await broker.stop()
