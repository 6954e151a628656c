"""The whole of it over real partitions: producers, outcomes, markers, crashes and partitions that are away."""

from __future__ import annotations

import asyncio
from asyncio import Future
from itertools import count
from pathlib import Path

from moldau.core.errors import ErrorCode
from moldau.core.ids import ProducerId, TopicPartition
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.transactions.coordinator import TransactionCoordinator
from moldau.transactions.endings import Ending
from moldau.transactions.limits import TransactionLimits
from moldau.transactions.markers_due import MarkersDue
from moldau.transactions.producers import Initialising
from moldau.transactions.states import State
from moldau.transactions.transaction import LAST_USABLE_EPOCH, ProducerIdAndEpoch, Transaction
from tests.coordinator.loops import on_a_loop
from tests.coordinator.partitions import flush_at_once, new_partition, reopened

PARTITIONS = 4
NAME = "payments"
ORDERS = frozenset({TopicPartition("orders", 0), TopicPartition("orders", 1)})
TURNS_MAX = 2_000


class Clock:
    def __init__(self) -> None:
        self.at_ms = 1_000

    def now_ms(self) -> int:
        return self.at_ms

    def elapsed_ms(self) -> int:
        return self.at_ms


class Broker:
    """Partitions that survive, markers as they came, and a coordinator that does not survive."""

    def __init__(self, folder: Path, limits: TransactionLimits | None = None) -> None:
        self.partitions: dict[int, Partition] = {index: new_partition(folder, index) for index in range(PARTITIONS)}
        self.clock = Clock()
        self.limits = limits or TransactionLimits()
        self.ids = count(100)
        self.markers: list[tuple[TopicPartition, MarkersDue]] = []
        self.attempts: list[TopicPartition] = []
        self.refusals: dict[TopicPartition, ErrorCode] = {}
        self.transactions = self.coordinator()

    def coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(
            partition_of=self.partitions.get,
            partition_count=lambda: PARTITIONS,
            limits=self.limits,
            clock=self.clock,
            flush=flush_at_once,
            next_producer_id=self.next_id,
            write_marker=self.write_marker,
        )

    async def next_id(self) -> ProducerId:
        return ProducerId(next(self.ids))

    def write_marker(self, where: TopicPartition, due: MarkersDue, _: int) -> ErrorCode | Future[ErrorCode]:
        self.attempts.append(where)
        error = self.refusals.get(where, ErrorCode.NONE)
        if error is ErrorCode.NONE:
            self.markers.append((where, due))
        return error

    async def crash(self) -> None:
        await self.transactions.stop()
        self.partitions.update({index: reopened(partition) for index, partition in self.partitions.items()})
        self.transactions = self.coordinator()
        self.transactions.resume()
        while isinstance(self.transactions.shards(), ErrorCode):  # noqa: ASYNC110 - clients too can only ask again
            await asyncio.sleep(0)

    @property
    def transaction(self) -> Transaction:
        shards = self.transactions.shards()
        assert not isinstance(shards, ErrorCode)
        (found,) = [shard.transactions[NAME] for shard in shards if NAME in shard.transactions]
        return found

    async def until(self, state: State) -> None:
        for _ in range(TURNS_MAX):
            if self.transaction.state is state:
                return
            await asyncio.sleep(0.001)
        raise AssertionError(self.transaction)

    async def until_tried(self, where: TopicPartition) -> None:
        for _ in range(TURNS_MAX):
            if where in self.attempts:
                return
            await asyncio.sleep(0.001)
        raise AssertionError(self.attempts)

    async def begin(self) -> ProducerIdAndEpoch:
        reply = await self.transactions.init_producer_id(Initialising(transactional_id=NAME, timeout_ms=60_000))
        assert reply.error is ErrorCode.NONE
        producer = ProducerIdAndEpoch(reply.producer_id, reply.epoch)
        admitted = self.transactions.admit(NAME, producer, ORDERS, adds=True)
        assert admitted == dict.fromkeys(ORDERS, ErrorCode.NONE)
        return producer

    async def end(self, producer: ProducerIdAndEpoch, *, is_commit: bool = True) -> ErrorCode:
        request = Ending(
            transactional_id=NAME, producer_id=producer[0], epoch=producer[1], is_commit=is_commit, api_version=5
        )
        return (await self.transactions.end_txn(request)).error


@on_a_loop
async def test_an_outcome_is_followed_by_a_marker_for_every_partition(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    producer = await broker.begin()
    assert await broker.end(producer) is ErrorCode.NONE
    await broker.until(State.COMPLETE_COMMIT)
    assert [where for where, _ in broker.markers] == sorted(ORDERS)
    assert {(due.producer, due.is_commit) for _, due in broker.markers} == {(ProducerIdAndEpoch(100, 1), True)}
    await broker.transactions.stop()


class SyncedTogether(Broker):
    """Markers are on the disk once there is one in each partition."""

    def write_marker(self, where: TopicPartition, due: MarkersDue, epoch: int) -> Future[ErrorCode]:
        super().write_marker(where, due, epoch)
        self.waiting.append(asyncio.get_running_loop().create_future())
        if len(self.waiting) == len(ORDERS):
            for each in self.waiting:
                each.set_result(ErrorCode.NONE)
        return self.waiting[-1]

    waiting: list[Future[ErrorCode]]


@on_a_loop
async def test_the_markers_of_a_transaction_are_synced_together(tmp_path: Path) -> None:
    broker = SyncedTogether(tmp_path)
    broker.waiting = []
    assert await broker.end(await broker.begin()) is ErrorCode.NONE
    await broker.until(State.COMPLETE_COMMIT)
    await broker.transactions.stop()


@on_a_loop
async def test_what_is_not_added_is_not_admitted(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    producer = await broker.begin()
    other = TopicPartition("other", 0)
    assert broker.transactions.admit(NAME, producer, ORDERS | {other}, adds=False) == {
        **dict.fromkeys(ORDERS, ErrorCode.NONE),
        other: ErrorCode.TRANSACTION_ABORTABLE,
    }
    await broker.transactions.stop()


@on_a_loop
async def test_a_partition_that_is_away_gets_its_marker_later_and_holds_up_nobody(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    away = TopicPartition("orders", 1)
    broker.refusals[away] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await broker.end(await broker.begin()) is ErrorCode.NONE
    await broker.until_tried(away)
    assert broker.transaction.state is State.PREPARE_COMMIT
    del broker.refusals[away]
    await broker.until(State.COMPLETE_COMMIT)
    assert [where for where, _ in broker.markers] == sorted(ORDERS)
    await broker.transactions.stop()


@on_a_loop
async def test_a_coordinator_that_is_fenced_leaves_the_outcome_to_the_next(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.refusals[TopicPartition("orders", 0)] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert await broker.end(await broker.begin()) is ErrorCode.NONE
    await broker.until_tried(TopicPartition("orders", 0))
    assert (broker.transaction.state, broker.markers) == (State.PREPARE_COMMIT, [])
    broker.refusals.clear()
    await broker.crash()
    await broker.until(State.COMPLETE_COMMIT)
    await broker.transactions.stop()


@on_a_loop
async def test_markers_are_written_after_a_crash(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.refusals = dict.fromkeys(ORDERS, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert await broker.end(await broker.begin(), is_commit=False) is ErrorCode.NONE
    broker.refusals = {}
    await broker.crash()
    await broker.until(State.COMPLETE_ABORT)
    assert [(where, due.is_commit) for where, due in broker.markers] == [(each, False) for each in sorted(ORDERS)]
    await broker.transactions.stop()


@on_a_loop
async def test_an_open_transaction_is_there_after_a_crash(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    producer = await broker.begin()
    await broker.crash()
    assert (broker.transaction.state, broker.transaction.partitions) == (State.ONGOING, ORDERS)
    assert await broker.end(producer) is ErrorCode.NONE
    await broker.transactions.stop()


@on_a_loop
async def test_another_broker_answers_when_the_partition_is_lost(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    producer = await broker.begin()
    broker.partitions[broker.transactions.index_of(NAME)].lead(LeaderAndEpoch(7, 1))
    assert await broker.end(producer) is ErrorCode.NOT_COORDINATOR
    refused = broker.transactions.admit(NAME, producer, ORDERS, adds=True)
    assert refused == dict.fromkeys(ORDERS, ErrorCode.NOT_COORDINATOR)
    await broker.transactions.stop()


@on_a_loop
async def test_a_time_out_finds_a_producer_id_where_the_epochs_are_used_up(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    await broker.begin()
    shards = broker.transactions.shards()
    assert not isinstance(shards, ErrorCode)
    (shard,) = [each for each in shards if NAME in each.transactions]
    used_up = Transaction(NAME, ProducerId(100), LAST_USABLE_EPOCH, timeout_ms=60_000, state=State.EMPTY)
    shard.transactions[NAME] = used_up
    reply = await broker.transactions.init_producer_id(
        Initialising(transactional_id=NAME, timeout_ms=60_000, producer_id=100, epoch=LAST_USABLE_EPOCH - 1)
    )
    for _ in range(TURNS_MAX):
        if shard.spare_id is not None:
            break
        await asyncio.sleep(0)
    assert (reply.error, shard.spare_id) == (ErrorCode.PRODUCER_FENCED, ProducerId(102))
    await broker.transactions.stop()


@on_a_loop
async def test_limits_change_for_those_that_run(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    await broker.begin()
    broker.transactions.limit(TransactionLimits(timeout_ms_max=1_000))
    refused = await broker.transactions.init_producer_id(Initialising(transactional_id=NAME, timeout_ms=60_000))
    assert refused.error is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    await broker.transactions.stop()
