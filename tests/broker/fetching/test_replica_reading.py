"""A Fetch with a replica id: it reads to the log's end, reports how far it came, and waits for what is appended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.fetching.cold_reads import ColdReads
from moldau.broker.fetching.fetch_sessions import NO_SESSION, FetchSessions
from moldau.broker.requests.delayed_response import DelayedResponse, future_of
from moldau.controller.image import BrokerImage, ClusterImage
from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.replication.assignment import IsrChange
from moldau.replication.partition import LeaderAndEpoch
from moldau.wire.api import ApiKey
from moldau.wire.messages import FetchRequest
from moldau.wire.messages.fetch import EpochEndOffset, FetchPartition, FetchTopic, PartitionData, ReplicaState
from tests.coordinator.loops import on_a_loop
from tests.log.samples import NOW_MS, TOPIC_ID, batch
from tests.replication.replicated import ALICE, BOB, LAG_MS, LEADER, assigned
from tests.replication.replicated_broker import ReplicatedBroker

DAY_MS = 24 * 60 * 60 * 1000
VERSION = 17


class Leader:
    """The handler of Fetch over one replicated partition."""

    def __init__(self, folder: Path, cold_reads: ColdReads) -> None:
        self.broker = ReplicatedBroker(folder)
        self.partition = self.broker.orders
        self.now_ms = NOW_MS
        self.asked: list[IsrChange] = []
        services: Any = self.broker.services
        services.clock = SimpleNamespace(now_ms=lambda: NOW_MS, elapsed_ms=lambda: self.now_ms)
        services.fetch_sessions = FetchSessions(sessions_max=1, eviction_ms_min=DAY_MS, seed=0)
        services.cold_reads = cold_reads
        services.partitions.get_by_id = lambda _, index: self.partition if index == 0 else None
        services.replication = SimpleNamespace(
            change_isr=lambda _, change: self.asked.append(change), sending=None, nearer_replica=lambda *_: None
        )
        brokers = {each: BrokerImage(each, {}, epoch=5) for each in (LEADER, ALICE, BOB)}
        services.controller.image = ClusterImage(brokers=brokers)

    def fetch(self, offset: int | None = None, *, replica: int = ALICE, wait_ms: int = 0, **more: Any) -> Any:
        asked = FetchPartition(
            partition=0,
            current_leader_epoch=more.pop("leader_epoch", 0),
            fetch_offset=offset or 0,
            last_fetched_epoch=more.pop("last_epoch", -1),
            log_start_offset=0,
            partition_max_bytes=1 << 20,
        )
        state = ReplicaState(replica, more.pop("broker_epoch", 5)) if replica >= 0 else ReplicaState()
        topics = [] if offset is None else [FetchTopic(topic_id=TOPIC_ID, partitions=[asked])]
        request = FetchRequest(
            replica_state=state, max_wait_ms=wait_ms, min_bytes=1, topics=topics, **{"session_epoch": -1, **more}
        )
        return self.broker.call(ApiKey.FETCH, request, VERSION)

    def append(self) -> None:
        self.partition.append(batch([b"value"]), now_ms=self.now_ms)


@contextmanager
def leading(folder: Path) -> Iterator[Leader]:
    cold_reads = ColdReads()
    try:
        yield Leader(folder, cold_reads)
    finally:
        cold_reads.close()


def only(response: Any) -> PartitionData:
    ((data,),) = [topic.partitions for topic in response.responses]
    assert isinstance(data, PartitionData)
    return data


@on_a_loop
async def test_a_follower_sees_what_is_appended_and_a_consumer_what_is_committed(tmp_path: Path) -> None:
    with leading(tmp_path) as leader:
        leader.append()
        assert len(only(leader.fetch(0)).records or b"") > 0
        assert len(only(leader.fetch(0, replica=-1)).records or b"") == 0
        leader.fetch(1)
        assert only(leader.fetch(1, replica=BOB)).high_watermark == 1, "this fetch commits it, and says so"
        assert len(only(leader.fetch(0, replica=-1)).records or b"") > 0


@on_a_loop
async def test_a_follower_waits_for_an_append_and_a_consumer_for_the_commit(tmp_path: Path) -> None:
    with leading(tmp_path) as leader:
        follower = leader.fetch(0, wait_ms=DAY_MS)
        consumer = leader.fetch(0, replica=-1, wait_ms=DAY_MS)
        assert isinstance(follower, DelayedResponse)
        assert isinstance(consumer, DelayedResponse)
        leader.append()
        assert len(only(await future_of(follower)).records or b"") > 0
        assert not consumer.done()
        leader.fetch(1)
        leader.fetch(1, replica=BOB)
        assert only(await future_of(consumer)).high_watermark == 1


@on_a_loop
async def test_a_waiting_follower_hears_of_another_leadership_at_once(tmp_path: Path) -> None:
    with leading(tmp_path) as leader:
        again = future_of(leader.fetch(0, wait_ms=DAY_MS))
        leader.partition.lead(LeaderAndEpoch(LEADER, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
        assert only(await again).error_code == ErrorCode.FENCED_LEADER_EPOCH
        gone = future_of(leader.fetch(0, wait_ms=DAY_MS, leader_epoch=1))
        leader.partition.lead(LeaderAndEpoch(BOB, 2), assigned(partition_epoch=2), now_ms=NOW_MS)
        data = only(await gone)
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (BOB, 2)


@on_a_loop
async def test_a_waiting_follower_hears_of_deleted_records_at_once(tmp_path: Path) -> None:
    """Who deletes them waits for all followers. It is told once: a follower may be unable to delete as much yet."""
    with leading(tmp_path) as leader:
        leader.append()
        leader.fetch(1, replica=BOB)
        opened = leader.fetch(1, last_epoch=0, session_epoch=0)
        session = {"session_id": opened.session_id}
        waiting = future_of(leader.fetch(None, session_epoch=1, wait_ms=DAY_MS, **session))
        consumer = leader.fetch(1, replica=-1, wait_ms=DAY_MS)
        leader.partition.delete_records(Offset(1), now_ms=NOW_MS)
        assert only(await waiting).log_start_offset == 1
        again = leader.fetch(None, session_epoch=2, wait_ms=DAY_MS, **session)
        assert isinstance(again, DelayedResponse)
        assert isinstance(consumer, DelayedResponse)
        await asyncio.sleep(0)
        assert not again.done()
        assert not consumer.done()


@on_a_loop
async def test_a_follower_that_was_away_hears_of_deleted_records_at_once(tmp_path: Path) -> None:
    """Its first fetch lets it join the ISR: it may be elected before a poll is over, and bring the records back."""
    with leading(tmp_path) as leader:
        leader.append()
        leader.fetch(1)
        leader.fetch(1, replica=BOB)
        leader.partition.delete_records(Offset(1), now_ms=NOW_MS)
        back = leader.fetch(1, last_epoch=0, session_epoch=0, wait_ms=DAY_MS)
        assert not isinstance(back, DelayedResponse)
        assert only(back).log_start_offset == 1


@on_a_loop
async def test_histories_that_part_are_told_at_once(tmp_path: Path) -> None:
    with leading(tmp_path) as leader:
        leader.append()
        leader.partition.lead(LeaderAndEpoch(LEADER, 3), assigned(partition_epoch=1), now_ms=NOW_MS)
        data = only(leader.fetch(5, wait_ms=DAY_MS, leader_epoch=3, last_epoch=1))
        assert data.diverging_epoch == EpochEndOffset(epoch=0, end_offset=1)
        replicas = leader.partition.replicas
        assert replicas is not None
        assert replicas.followers[ALICE].log_end_offset == -1, "what it has is not this log's"


@on_a_loop
async def test_a_follower_that_truncated_hears_what_is_committed(tmp_path: Path) -> None:
    """It takes nothing but the end of the epoch from an answer that has one."""
    with leading(tmp_path) as leader:
        leader.append()
        leader.fetch(1)
        leader.fetch(1, replica=BOB)
        leader.partition.lead(LeaderAndEpoch(LEADER, 3), assigned(partition_epoch=1), now_ms=NOW_MS)
        opened = leader.fetch(5, leader_epoch=3, last_epoch=1, session_epoch=0)
        session = {"session_id": opened.session_id, "leader_epoch": 3}
        diverged = leader.fetch(4, last_epoch=2, session_epoch=1, **session)
        for answer in (opened, diverged):
            assert only(answer).diverging_epoch == EpochEndOffset(epoch=0, end_offset=1)
        assert only(leader.fetch(1, last_epoch=0, session_epoch=2, **session)).high_watermark == 1
        assert leader.fetch(None, session_epoch=3, **session).responses == [], "it was told everything"


@on_a_loop
async def test_a_follower_in_a_new_epoch_hears_what_is_committed(tmp_path: Path) -> None:
    """It drops the answers to what it asked in the epoch before."""
    with leading(tmp_path) as leader:
        leader.append()
        leader.fetch(1, replica=BOB)
        opened = leader.fetch(1, last_epoch=0, session_epoch=0)
        assert only(opened).high_watermark == 1
        leader.partition.lead(LeaderAndEpoch(LEADER, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
        session = {"session_id": opened.session_id, "leader_epoch": 1}
        assert only(leader.fetch(1, last_epoch=0, session_epoch=1, **session)).high_watermark == 1
        assert leader.fetch(None, session_epoch=2, **session).responses == [], "it was told everything"


@pytest.mark.parametrize(("epoch", "error"), [(4, ErrorCode.NOT_LEADER_OR_FOLLOWER), (5, 0), (6, 0), (-1, 0)])
@on_a_loop
async def test_a_process_that_was_replaced_is_refused(tmp_path: Path, epoch: int, error: int) -> None:
    with leading(tmp_path) as leader:
        assert only(leader.fetch(0, broker_epoch=epoch)).error_code == error


@on_a_loop
async def test_a_follower_that_is_back_is_asked_into_the_isr(tmp_path: Path) -> None:
    with leading(tmp_path) as leader:
        leader.partition.lead(LeaderAndEpoch(LEADER, 1), assigned(LEADER, ALICE, partition_epoch=1), now_ms=NOW_MS)
        leader.fetch(0, replica=BOB, leader_epoch=1)
        assert [{each.broker_id for each in change.isr} for change in leader.asked] == [{LEADER, ALICE, BOB}]


@on_a_loop
async def test_an_idle_follower_in_a_session_stays_caught_up_without_a_word(tmp_path: Path) -> None:
    with leading(tmp_path) as leader:
        leader.append()
        leader.fetch(1, replica=BOB)
        opened = leader.fetch(1, last_epoch=0, session_epoch=0)
        assert opened.session_id != NO_SESSION
        leader.now_ms += 10 * LAG_MS
        session = {"session_id": opened.session_id}
        assert leader.fetch(None, session_epoch=1, **session).responses == []
        leader.append()
        leader.now_ms += LAG_MS - 1
        change = leader.partition.shrink_isr(leader.now_ms)
        assert change is not None
        assert {each.broker_id for each in change.isr} == {LEADER, ALICE}, "Bob was silent all the time"
        assert len(only(leader.fetch(None, session_epoch=2, **session)).records or b"") > 0


@on_a_loop
async def test_a_follower_takes_the_session_of_a_consumer_and_never_the_reverse(tmp_path: Path) -> None:
    with leading(tmp_path) as leader:
        consumer = leader.fetch(0, replica=-1, session_epoch=0).session_id
        assert consumer != NO_SESSION
        follower = leader.fetch(0, session_epoch=0).session_id
        assert follower != NO_SESSION
        assert leader.fetch(None, replica=-1, session_id=consumer, session_epoch=1).error_code == (
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        )
        assert leader.fetch(0, replica=-1, session_epoch=0).session_id == NO_SESSION
        assert leader.fetch(None, session_id=follower, session_epoch=1).error_code == ErrorCode.NONE


@on_a_loop
async def test_consumers_may_read_from_a_follower_what_it_knows_to_be_committed(tmp_path: Path) -> None:
    with leading(tmp_path) as leader:
        leader.append()
        leader.append()
        leader.partition.lead(LeaderAndEpoch(ALICE, 1), None, now_ms=NOW_MS)
        leader.partition.follow_high_watermark(leader.partition.log.end_offset - 1, 1)  # type: ignore[arg-type]
        data = only(leader.fetch(0, replica=-1, leader_epoch=1))
        assert (data.error_code, data.high_watermark) == (ErrorCode.NONE, 1)
        assert len(data.records or b"") > 0
        assert len(only(leader.fetch(1, replica=-1, leader_epoch=1)).records or b"") == 0
        assert only(leader.fetch(0, leader_epoch=1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert only(leader.fetch(9, replica=-1, leader_epoch=1)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@on_a_loop
async def test_a_consumer_with_a_nearer_replica_is_sent_there_at_once(tmp_path: Path) -> None:
    with leading(tmp_path) as leader:
        services: Any = leader.broker.services
        services.replication.nearer_replica = lambda *_: lambda _partition, _offset: BOB
        data = only(leader.fetch(0, replica=-1, wait_ms=DAY_MS, rack_id="west"))
        assert (data.error_code, data.preferred_read_replica) == (ErrorCode.NONE, BOB)
        await asyncio.sleep(0)
