"""What housekeeping remembers from one time to the next."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from moldau.broker.context import Services
from moldau.broker.housekeeping import Housekeeping
from moldau.broker.producing.flushing import Flusher
from moldau.controller.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from moldau.coordinator.long_work import LongWork
from moldau.core.clock import SystemClock
from moldau.core.config.broker import BrokerConfig
from moldau.core.ids import Offset
from moldau.log.directories.log_directories import LogDirectories
from tests.broker.topics.test_reconciliation import BROKER_ID, NOW_MS, append, image, node, run
from tests.log.samples import TOPIC_ID

OTHER_ID = BROKER_ID + 1


def test_a_deleted_log_is_forgotten(tmp_path: Path) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            with ThreadPoolExecutor(1) as executor:
                world = SimpleNamespace(
                    clock=SystemClock(),
                    config=BrokerConfig(),
                    partitions=broker.partitions,
                    directories=broker.directories,
                    flusher=Flusher(executor),
                    long_work=LongWork(),
                )
                housekeeping = Housekeeping(cast("Services", world), executor)
                await broker.follow(image(orders=1, other=1))
                for name in ("orders", "other"):
                    partition = broker.partitions.get(name, 0)
                    append(partition)
                    assert partition is not None
                    partition.log.update_config(partition.log.config.override({"flush.ms": "3600000"}))
                await housekeeping.flush_due(NOW_MS)
                assert len(housekeeping._unflushed_since_ms) == 2
                await broker.follow(image(other=1, changed={"orders"}))
                await housekeeping.flush_due(NOW_MS)
                assert [str(log.partition) for log in housekeeping._unflushed_since_ms] == ["other-0"]

    run(test)


def test_a_clock_that_is_set_back_does_not_put_off_a_flush(tmp_path: Path) -> None:
    """`flush.ms` is a promise about the disk, which has to be kept whatever the time is said to be."""

    async def test() -> None:
        async with node(tmp_path) as broker:
            with ThreadPoolExecutor(1) as executor:
                world = SimpleNamespace(
                    clock=SimpleNamespace(elapsed_ms=lambda: 5),
                    config=BrokerConfig(),
                    partitions=broker.partitions,
                    directories=broker.directories,
                    flusher=Flusher(executor),
                    long_work=LongWork(),
                )
                housekeeping = Housekeeping(cast("Services", world), executor)
                await broker.follow(image(orders=1))
                partition = broker.partitions.get("orders", 0)
                assert partition is not None
                append(partition)
                partition.log.update_config(partition.log.config.override({"flush.ms": "1000"}))
                await housekeeping.flush_due(NOW_MS)
                world.clock.elapsed_ms = lambda: 1_005
                await housekeeping.flush_due(NOW_MS - 3_600_000)
                async with asyncio.timeout(60):
                    while partition.log.unflushed_records:  # noqa: ASYNC110 - nobody tells of it
                        await asyncio.sleep(0.001)

    run(test)


def test_a_log_that_is_being_copied_to_another_log_directory_is_not_compacted(tmp_path: Path) -> None:
    """Its copy may have a value already, and would come to where the tombstone was after that is gone."""

    async def test() -> None:
        async with node(tmp_path) as broker:
            with ThreadPoolExecutor(1) as executor:
                moves = SimpleNamespace(future_of=lambda log: log if log.partition.topic == "orders" else None)
                world = SimpleNamespace(
                    config=BrokerConfig(), partitions=broker.partitions, directories=broker.directories, moves=moves
                )
                housekeeping = Housekeeping(cast("Services", world), executor)
                await broker.follow(image(orders=1, other=1))
                for partition in broker.partitions.all():
                    partition.log.update_config(partition.log.config.override({"cleanup.policy": "compact"}))
                assert [str(log.partition) for log, _ in housekeeping._compactable()] == ["other-0"]
                world.moves = None
                assert len(housekeeping._compactable()) == 2

    run(test)


def test_an_interval_of_nothing_is_no_reason_to_hold_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise asyncio.CancelledError

    async def test() -> None:
        with ThreadPoolExecutor(1) as executor:
            directories = LogDirectories.open([tmp_path], node_id=BROKER_ID)
            world = SimpleNamespace(clock=SystemClock(), config=BrokerConfig(), directories=directories)
            housekeeping = Housekeeping(cast("Services", world), executor)
            intervals = iter((0, -1, 5_000))
            with pytest.raises(asyncio.CancelledError):
                await housekeeping._repeat(lambda: next(intervals), lambda _now_ms: None)
            directories.close()

    monkeypatch.setattr("moldau.broker.housekeeping.asyncio.sleep", sleep)
    asyncio.run(test())
    assert waits == [1, 1, 5]


def replicated_image(*isr: int) -> ClusterImage:
    """A topic that broker 1 leads and broker 2 follows."""
    state = PartitionImage((BROKER_ID, OTHER_ID), isr, BROKER_ID)
    topic = TopicImage("orders", TOPIC_ID, (state,))
    brokers = {broker_id: BrokerImage(broker_id, {}) for broker_id in (BROKER_ID, OTHER_ID)}
    return ClusterImage(
        topics={"orders": topic}, topic_ids={TOPIC_ID: "orders"}, brokers=brokers, changed_topics=frozenset({"orders"})
    )


def test_checkpoints_hold_what_is_committed_and_the_next_start_begins_with_it(tmp_path: Path) -> None:
    checkpoint = tmp_path / "replication-offset-checkpoint"

    async def test() -> None:
        async with node(tmp_path) as broker:
            broker.directories.high_watermark_of = broker.partitions.high_watermark_of
            with ThreadPoolExecutor(1) as executor:
                world = SimpleNamespace(
                    config=BrokerConfig(),
                    partitions=broker.partitions,
                    directories=broker.directories,
                    controller=SimpleNamespace(image=replicated_image(BROKER_ID, OTHER_ID)),
                    long_work=LongWork(),
                )
                housekeeping = Housekeeping(cast("Services", world), executor)
                await broker.follow(replicated_image(BROKER_ID, OTHER_ID))
                partition = broker.partitions.get("orders", 0)
                assert partition is not None
                append(partition)
                partition.fetched_by(OTHER_ID, Offset(1), log_start_offset=Offset(0), broker_epoch=-1, now_ms=NOW_MS)
                append(partition)
                await housekeeping.write_high_watermarks(NOW_MS)
                assert checkpoint.read_text() == "0\n1\norders 0 1\n"
                append(partition)
        assert checkpoint.read_text() == "0\n1\norders 0 1\n", "a clean stop"
        async with node(tmp_path) as broker:
            await broker.open(replicated_image(BROKER_ID, OTHER_ID))
            partition = broker.partitions.get("orders", 0)
            assert partition is not None
            assert (partition.log.end_offset, partition.high_watermark) == (3, 1)

    run(test)


def test_a_lone_broker_writes_no_high_watermarks_while_it_runs(tmp_path: Path) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            with ThreadPoolExecutor(1) as executor:
                alone = ClusterImage(brokers={BROKER_ID: BrokerImage(BROKER_ID, {})})
                world = SimpleNamespace(
                    config=BrokerConfig(), directories=broker.directories, controller=SimpleNamespace(image=alone)
                )
                await Housekeeping(cast("Services", world), executor).write_high_watermarks(NOW_MS)
                assert not (tmp_path / "replication-offset-checkpoint").exists()

    run(test)
