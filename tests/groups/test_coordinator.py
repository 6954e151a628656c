"""The whole of it over real partitions: placement, loading, crashes, losing a partition."""

from __future__ import annotations

import asyncio
from asyncio import Future
from pathlib import Path
from typing import Any

import pytest

from moldau.coordinator import shards
from moldau.coordinator.journal import TransactionalProducer
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID
from moldau.groups.classic.group import State
from moldau.groups.classic.membership import Syncing
from moldau.groups.coordinator import GroupCoordinator
from moldau.groups.limits import GroupLimits
from moldau.groups.offsets.classic import CommittedPartition, Committing
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.wire.messages.join_group import JoinGroupResponse
from moldau.wire.messages.sync_group import SyncGroupResponse
from tests.coordinator.loops import on_a_loop
from tests.coordinator.partitions import flush_at_once, new_partition, reopened
from tests.groups.worlds import GROUP, joining

PARTITIONS = 4


class Clock:
    def now_ms(self) -> int:
        return 1_000

    def elapsed_ms(self) -> int:
        return 1_000


class Broker:
    """Partitions that survive, and a coordinator that does not."""

    def __init__(self, folder: Path) -> None:
        self.partitions: dict[int, Partition] = {index: new_partition(folder, index) for index in range(PARTITIONS)}
        self.groups = self.coordinator()

    def coordinator(self, members_max: int = 10) -> GroupCoordinator:
        return GroupCoordinator(
            partition_of=self.partitions.get,
            partition_count=lambda: PARTITIONS,
            limits=GroupLimits(initial_rebalance_delay_ms=0, members_max=members_max),
            clock=Clock(),
            flush=flush_at_once,
        )

    def crash(self, *, members_max: int = 10) -> None:
        self.partitions.update({index: reopened(partition) for index, partition in self.partitions.items()})
        self.groups = self.coordinator(members_max)

    def partition_of(self, group_id: str) -> Partition:
        return self.partitions[self.groups.index_of(group_id)]

    async def loaded(self) -> None:
        self.groups.resume()
        while isinstance(self.groups.shards(), ErrorCode):  # noqa: ASYNC110 - clients too can only ask again
            await asyncio.sleep(0)

    async def commit(self, group_id: str, offset: int, partition: int = 0, *, topic: str = "orders") -> list[ErrorCode]:
        request = Committing(group_id=group_id, partitions=[CommittedPartition(topic, partition, offset)])
        answer = self.groups.write(group_id, lambda shard, now_ms: shard.decide_commit(request, now_ms), refused)
        return await answer if isinstance(answer, Future) else answer

    async def offsets(self, group_id: str) -> Any:
        def decide(shard: Any, _: int) -> Decision[dict[tuple[str, int], int]]:
            kept = shard.offsets_of(group_id)
            return Decision.reply_only(
                {(topic, index): value.offset for topic, values in kept.items() for index, value in values.items()}
            )

        return await done(self.groups.write(group_id, decide, lambda error: {("", 0): error}))


def refused(error: ErrorCode) -> list[ErrorCode]:
    return [error]


async def done(answer: Any) -> Any:
    return await answer if isinstance(answer, Future) else answer


@on_a_loop
async def test_groups_are_spread_over_the_partitions(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    for name in "abcd":
        assert await broker.commit(name, 1) == [ErrorCode.NONE]
    assert [partition.log.end_offset for partition in broker.partitions.values()] == [1, 1, 1, 1]


@on_a_loop
async def test_a_crash_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    for number in range(500):
        assert await broker.commit(f"g{number % 10}", number, number % 7) == [ErrorCode.NONE]
    before = [await broker.offsets(f"g{number}") for number in range(10)]
    broker.crash()
    await broker.loaded()
    assert [await broker.offsets(f"g{number}") for number in range(10)] == before


@on_a_loop
async def test_while_groups_are_loaded_requests_wait(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    await broker.commit(GROUP, 41)
    broker.crash()
    early = asyncio.ensure_future(broker.commit(GROUP, 42))
    assert broker.groups.shards() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    other = next(name for name in "abcdefgh" if broker.groups.index_of(name) != broker.groups.index_of(GROUP))
    assert await broker.commit(other, 1) == [ErrorCode.NONE], "an empty partition needs no loading"
    assert await early == [ErrorCode.NONE]
    assert await broker.offsets(GROUP) == {("orders", 0): 42}


@on_a_loop
async def test_nobody_waits_long_for_groups_that_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "LOADED_S_MAX", 0.0)
    broker = Broker(tmp_path)
    for partition in range(500):  # more than is read at once
        await broker.commit(GROUP, 41, partition, topic="t" * 200)
    broker.crash()
    assert await broker.commit(GROUP, 42) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    await broker.loaded()
    assert set((await broker.offsets(GROUP)).values()) == {41}


@on_a_loop
async def test_a_partition_that_is_led_elsewhere_has_its_coordinator_there(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    waiting = broker.groups.write(
        GROUP,
        lambda shard, now_ms: shard.decide_join(
            joining(new_id="a", must_know_id=False, rebalance_timeout_ms=60_000), now_ms
        ),
        lambda error: JoinGroupResponse(error_code=error),
    )
    broker.partition_of(GROUP).lead(LeaderAndEpoch(1, 1))
    assert (await done(waiting)).error_code == ErrorCode.NOT_COORDINATOR
    assert await broker.commit(GROUP, 1) == [ErrorCode.NOT_COORDINATOR]
    broker.partition_of(GROUP).lead(LeaderAndEpoch(0, 2))
    await broker.loaded()
    assert await broker.commit(GROUP, 1) == [ErrorCode.NONE]


@on_a_loop
async def test_without_the_topic_there_is_no_coordinator(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.partitions.clear()
    assert await broker.commit(GROUP, 1) == [ErrorCode.NOT_COORDINATOR]
    assert broker.groups.shards() == []


@on_a_loop
async def test_transactions_survive_a_crash_open_or_ended(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    index = broker.groups.index_of(GROUP)
    for producer_id, offset, partition in ((1, 10, 0), (2, 20, 1), (3, 30, 2)):
        request = Committing(group_id=GROUP, partitions=[CommittedPartition("orders", partition, offset)])
        committed = broker.groups.commit_in_transaction(request, TransactionalProducer(producer_id, 0))
        assert await done(committed) == [ErrorCode.NONE]
    ended = [
        broker.groups.end_transaction(
            index, TransactionalProducer(producer_id, 0), is_commit=is_commit, coordinator_epoch=0
        )
        for producer_id, is_commit in ((1, True), (2, False))
    ]
    assert [await done(each) for each in ended] == [ErrorCode.NONE] * 2
    assert await broker.offsets(GROUP) == {("orders", 0): 10}
    broker.crash()
    await broker.loaded()
    assert await broker.offsets(GROUP) == {("orders", 0): 10}
    last = broker.groups.end_transaction(index, TransactionalProducer(3, 0), is_commit=True, coordinator_epoch=0)
    assert await done(last) is ErrorCode.NONE
    assert await broker.offsets(GROUP) == {("orders", 0): 10, ("orders", 2): 30}


@on_a_loop
async def test_at_the_end_everybody_is_sent_away(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    commit = asyncio.ensure_future(broker.commit(GROUP, 1))
    await asyncio.sleep(0)
    await broker.groups.stop()
    assert await commit == [ErrorCode.NONE], "what was decided is written"


@on_a_loop
async def test_offsets_of_a_topic_that_is_deleted_while_they_are_loaded_go_too(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    await broker.commit(GROUP, 41)
    broker.crash()
    broker.groups.resume()
    broker.groups.topics_deleted({"orders": ZERO_UUID})
    await broker.loaded()
    assert await broker.offsets(GROUP) == {}
    assert await broker.commit(GROUP, 1) == [ErrorCode.NONE]
    broker.crash()
    await broker.loaded()
    assert await broker.offsets(GROUP) == {("orders", 0): 1}, "those of the next topic of that name stay"


@on_a_loop
async def test_more_offsets_than_fit_into_a_batch_go_with_their_topic(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    topic = "t" * 30_000
    for partition in range(40):
        await broker.commit(GROUP, 41, partition, topic=topic)
    broker.groups.topics_deleted({topic: ZERO_UUID})
    assert await broker.offsets(GROUP) == {}
    broker.crash()
    await broker.loaded()
    assert await broker.offsets(GROUP) == {}


def ask_to_join(broker: Broker, member_id: str = "", new_id: str = "") -> Any:
    request = joining(member_id, new_id=new_id, must_know_id=False)
    return broker.groups.write(
        GROUP,
        lambda shard, now_ms: shard.decide_join(request, now_ms),
        lambda error: JoinGroupResponse(error_code=error),
    )


BOTH = {"a": b"first", "b": b"second"}


def hand_in(broker: Broker, member_id: str, generation: int, assignments: dict[str, bytes] = BOTH) -> Any:
    request = Syncing(group_id=GROUP, member_id=member_id, generation=generation, assignments=assignments)
    return broker.groups.write(
        GROUP,
        lambda shard, now_ms: shard.decide_sync(request, now_ms),
        lambda error: SyncGroupResponse(error_code=error),
    )


async def fill_with_two(broker: Broker) -> None:
    await done(ask_to_join(broker, new_id="a"))
    joined = [await done(each) for each in (ask_to_join(broker, new_id="b"), ask_to_join(broker, "a"))]
    synced = [hand_in(broker, each.member_id, each.generation_id) for each in joined]
    assert [(await done(each)).assignment for each in synced] == [b"second", b"first"]


@on_a_loop
async def test_a_group_that_is_too_large_for_a_lowered_limit_must_join_again(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    await fill_with_two(broker)
    broker.crash(members_max=2)
    await broker.loaded()
    assert state_of(broker) is State.STABLE
    broker.crash(members_max=1)
    await broker.loaded()
    assert state_of(broker) is State.PREPARING


def state_of(broker: Broker) -> State:
    shards = broker.groups.shards()
    assert isinstance(shards, list)
    return next(shard.groups[GROUP].state for shard in shards if GROUP in shard.groups)


@on_a_loop
async def test_an_assignment_too_large_for_the_log_is_refused_to_all_who_wait_for_it(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    await done(ask_to_join(broker, new_id="a"))
    joined = [await done(each) for each in (ask_to_join(broker, new_id="b"), ask_to_join(broker, "a"))]
    generation, leader = joined[0].generation_id, joined[0].leader
    (follower,) = {"a", "b"} - {leader}
    waiting = hand_in(broker, follower, generation)
    refused = hand_in(broker, leader, generation, {"a": bytes(2_000_000)})
    for each in (refused, waiting):
        assert (await done(each)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert state_of(broker) is State.PREPARING, "as in Apache Kafka, all of them join again"
