"""Two and three real brokers, with real clients: what is produced with acks=all is on all of them."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.controller.records import BrokerConfigsChanged, TopicDeleted
from moldau.core.errors import ErrorCode
from moldau.log.partition_log import PartitionLog
from moldau.replication.partition import Partition
from tests.replication.exchanges import content
from tests.replication.live import LiveBroker, Metadata, live_cluster, until

SCENARIO_S_MAX = 60.0


def scenario(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test(*args, **kwargs), SCENARIO_S_MAX)

        asyncio.run(bounded())

    return run


async def in_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, work)


async def produce(brokers: dict[int, LiveBroker], topic: str, *values: bytes, partition: int = 0, **more: Any) -> None:
    """With acks=all; returns when all are acknowledged."""
    bootstrap = ",".join(each.address for each in brokers.values() if each.port)
    failures: list[str] = []

    def work() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 1, **more})

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                failures.append(str(error))

        for value in values:
            producer.produce(topic, value, partition=partition, on_delivery=delivered)
        left = producer.flush(30)
        assert left == 0

    await in_thread(work)
    assert failures == []


async def consume(address: str, topic: str, count: int, **more: Any) -> list[bytes]:
    def work() -> list[bytes]:
        consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest", **more})
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[bytes] = []
        while len(found) < count:
            message = consumer.poll(30)
            assert message is not None, f"{len(found)} of {count}"
            assert message.error() is None, message.error()
            found.append(message.value())
        consumer.close()
        return found

    result: list[bytes] = await in_thread(work)
    return result


def replicas(brokers: dict[int, LiveBroker], topic: str, index: int = 0) -> list[Partition]:
    found = [each.partition(topic, index) for each in brokers.values()]
    return [each for each in found if each is not None]


async def until_equal(brokers: dict[int, LiveBroker], topic: str, end: int, index: int = 0) -> None:
    def is_so() -> bool:
        all_of_it = replicas(brokers, topic, index)
        return all(each.log.end_offset == each.high_watermark == end for each in all_of_it)

    await until(is_so, f"replicas of {topic} never had {end} records")
    assert len({content(each) for each in replicas(brokers, topic, index)}) == 1


def isr(metadata: Metadata, topic: str, index: int = 0) -> set[int]:
    return set(metadata.image.topics[topic].partitions[index].isr)


@scenario
async def test_what_is_produced_is_on_all_replicas(tmp_path: Path) -> None:
    async with live_cluster(tmp_path, 1, 2, 3) as (metadata, brokers):
        metadata.create("orders", (1, 2, 3), (2, 3, 1), min_insync_replicas="3")
        await until(lambda: len(replicas(brokers, "orders", 1)) == 3, "folders are made")
        for index in (0, 1):
            values = [b"%d-%d" % (index, number) for number in range(500)]
            await produce(brokers, "orders", *values, partition=index)
            await until_equal(brokers, "orders", 500, index)
        assert await consume(brokers[1].address, "orders", 500) == [b"0-%d" % number for number in range(500)]
        assert isr(metadata, "orders") == {1, 2, 3}


@scenario
async def test_a_leader_is_lost_and_comes_back(tmp_path: Path) -> None:
    async with live_cluster(tmp_path, 1, 2, 3) as (metadata, brokers):
        metadata.create("orders", (2, 3, 1), min_insync_replicas="2")
        await until(lambda: len(replicas(brokers, "orders")) == 3, "folders are made")
        await produce(brokers, "orders", *[b"before-%d" % number for number in range(200)])
        await brokers[2].stop()
        metadata.without(2)
        left = {each: brokers[each] for each in (1, 3)}
        await until(lambda: left[3].led("orders").is_leader, "another one leads")
        await produce(left, "orders", *[b"after-%d" % number for number in range(200)])
        await until_equal(left, "orders", 400)
        await brokers[2].start()
        await until_equal(brokers, "orders", 400)
        await until(lambda: isr(metadata, "orders") == {1, 2, 3}, "it is in sync again")
        found = await consume(brokers[2].address, "orders", 400)
        assert found[:200] == [b"before-%d" % number for number in range(200)]
        assert found[200:] == [b"after-%d" % number for number in range(200)]


@scenario
async def test_a_broker_that_comes_back_empty_takes_its_replicas_up_again(tmp_path: Path) -> None:
    async with live_cluster(tmp_path, 1, 2) as (metadata, brokers):
        metadata.create("orders", (1, 2), (1, 2), min_insync_replicas="1", segment_bytes="1048576")
        await until(lambda: len(replicas(brokers, "orders", 1)) == 2, "folders are made")
        for index in (0, 1):
            await produce(brokers, "orders", *[b"x" * 1_000] * 2_000, partition=index)
        await brokers[2].stop()
        metadata.without(2)
        for folder in (tmp_path / "broker-2").glob("orders-*"):
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
        (tmp_path / "broker-2" / "meta.properties").unlink()
        await brokers[2].start()
        for index in (0, 1):
            await until_equal(brokers, "orders", 2_000, index)
        await until(lambda: isr(metadata, "orders") == isr(metadata, "orders", 1) == {1, 2}, "both are in sync")


@scenario
async def test_a_replica_is_moved_to_another_broker(tmp_path: Path) -> None:
    async with live_cluster(tmp_path, 1, 2, 3) as (metadata, brokers):
        metadata.create("orders", (1, 2))
        await until(lambda: len(replicas(brokers, "orders")) == 2, "folders are made")
        await produce(brokers, "orders", *[b"v%d" % number for number in range(100)])
        metadata.change("orders", 0, replicas=(1, 2, 3), adding_replicas=(3,))
        await until(lambda: isr(metadata, "orders") == {1, 2, 3}, "the new one is in sync")
        metadata.change("orders", 0, replicas=(3, 1), isr=(3, 1), leader=3, adding_replicas=())
        await until(lambda: brokers[3].led("orders").is_leader, "the new one leads")
        await until(lambda: brokers[2].partition("orders") is None, "the old one is gone")
        await until(lambda: not (tmp_path / "broker-2" / "orders-0").exists(), "its folder is gone, too")
        await produce(brokers, "orders", *[b"w%d" % number for number in range(100)])
        await until_equal(brokers, "orders", 200)


@scenario
async def test_a_lone_replica_gets_a_follower(tmp_path: Path) -> None:
    async with live_cluster(tmp_path, 1, 2, replica_lag_time_max_ms="400") as (metadata, brokers):
        metadata.create("orders", (1,))
        await until(lambda: len(replicas(brokers, "orders")) == 1, "its folder is made")
        await produce(brokers, "orders", b"alone")
        metadata.change("orders", 0, replicas=(1, 2), adding_replicas=(2,))
        await until(lambda: isr(metadata, "orders") == {1, 2}, "the new one is in sync")
        await produce(brokers, "orders", b"together")
        await until_equal(brokers, "orders", 2)
        await brokers[2].services.replication.stop()
        await produce(brokers, "orders", b"without", **{"message.timeout.ms": 20_000})
        await until(lambda: isr(metadata, "orders") == {1}, "who fetches no more leaves the ISR")


@scenario
async def test_a_topic_that_is_deleted_and_created_again_is_another_one(tmp_path: Path) -> None:
    async with live_cluster(tmp_path, 1, 2) as (metadata, brokers):
        metadata.create("orders", (1, 2))
        await until(lambda: len(replicas(brokers, "orders")) == 2, "folders are made")
        await produce(brokers, "orders", b"old", b"old")
        await until_equal(brokers, "orders", 2)
        metadata.write([TopicDeleted(metadata.image.topics["orders"].id)])
        metadata.create("orders", (2, 1))
        await until(
            lambda: len(replicas(brokers, "orders")) == 2 and brokers[2].led("orders").is_leader, "it is there again"
        )
        await produce(brokers, "orders", b"new")
        await until_equal(brokers, "orders", 1)


@scenario
async def test_a_silent_controller_holds_up_no_isr_once_there_is_another(tmp_path: Path) -> None:
    async with live_cluster(tmp_path, 1, 2, replica_lag_time_max_ms="400") as (metadata, brokers):
        metadata.create("orders", (2, 1))
        await until(lambda: len(replicas(brokers, "orders")) == 2, "folders are made")
        asked = metadata.fall_silent()
        await brokers[1].services.replication.stop()
        producing = asyncio.ensure_future(produce(brokers, "orders", b"v", **{"message.timeout.ms": 20_000}))
        await until(lambda: len(asked) > 0, "the leader wants another ISR")
        metadata.control_by(2)
        await producing
        assert isr(metadata, "orders") == {2}


@scenario
async def test_partitions_spread_over_as_many_fetchers_as_are_configured(tmp_path: Path) -> None:
    async with live_cluster(tmp_path, 1, 2) as (metadata, brokers):
        metadata.create("orders", *[(1, 2)] * 8)
        await until(lambda: len(replicas(brokers, "orders", 7)) == 2, "folders are made")
        await produce(brokers, "orders", b"before", partition=7)
        metadata.write([BrokerConfigsChanged("", {"num.replica.fetchers": "2"})])
        names = {"replica-fetcher-0-of-1", "replica-fetcher-1-of-1"}
        await until(lambda: names <= {each.get_name() for each in asyncio.all_tasks()}, "there are two")
        for index in range(8):
            await produce(brokers, "orders", b"after", partition=index)
            await until_equal(brokers, "orders", 1 + (index == 7), index)


@scenario
async def test_consumers_read_from_the_replica_in_their_rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = Metadata()
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    brokers = {
        each: LiveBroker(metadata, each, tmp_path / str(each), broker_rack=rack, replica_selector_class=selector)
        for each, rack in ((1, "east"), (2, "west"))
    }
    try:
        for broker in brokers.values():
            await broker.start()
        metadata.create("orders", (1, 2))
        await until(lambda: len(replicas(brokers, "orders")) == 2, "folders are made")
        await produce(brokers, "orders", *[b"v%d" % number for number in range(50)])
        await until_equal(brokers, "orders", 50)
        read = count_reads(brokers[2].led("orders"), monkeypatch)
        found = await consume(brokers[1].address, "orders", 50, **{"client.rack": "west"})
        assert found == [b"v%d" % number for number in range(50)]
        assert read[0] > 0, "the follower served it"
    finally:
        for broker in brokers.values():
            await broker.stop()


def count_reads(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counted, read = [0], PartitionLog.read

    def counting(self: PartitionLog, *args: Any, **kwargs: Any) -> Any:
        counted[0] += self is partition.log
        return read(self, *args, **kwargs)

    monkeypatch.setattr(PartitionLog, "read", counting)
    return counted


@scenario
async def test_a_follower_whose_disk_fails_is_offline_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live_cluster(tmp_path, 1, 2, replica_lag_time_max_ms="500") as (metadata, brokers):
        metadata.create("orders", (1, 2), (2, 1))
        await until(lambda: len(replicas(brokers, "orders", 1)) == 2, "folders are made")
        await produce(brokers, "orders", b"a")
        await until_equal(brokers, "orders", 1)
        broken = str(tmp_path / "broker-2" / "orders-0")
        fail_writes_in(broken, monkeypatch)
        await produce(brokers, "orders", b"b", **{"message.timeout.ms": 20_000})
        await until(lambda: brokers[2].led("orders").log.offline is not None, "the follower noticed")
        assert brokers[1].led("orders").is_leader
        await until(lambda: isr(metadata, "orders") == {1}, "it left the ISR")
        assert brokers[2].led("orders").check_leader(-1) is ErrorCode.KAFKA_STORAGE_ERROR


def fail_writes_in(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite

    def failing(fd: int, data: Any, position: int) -> int:
        if os.readlink(f"/proc/self/fd/{fd}").startswith(folder):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pwrite(fd, data, position)

    monkeypatch.setattr(os, "pwrite", failing)
    monkeypatch.setattr(os, "ftruncate", partial(_refuse_truncate, folder, os.ftruncate))


def _refuse_truncate(folder: str, ftruncate: Any, fd: int, size: int) -> None:
    if os.readlink(f"/proc/self/fd/{fd}").startswith(folder):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    ftruncate(fd, size)
