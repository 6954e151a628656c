"""A replica that moves to another log directory while it is written to and read."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient

import moldau
from moldau.core.errors import ErrorCode
from moldau.embedded import EmbeddedBroker
from moldau.log.directories.future_log import MARK
from moldau.wire.messages import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.wire.messages.alter_replica_log_dirs import AlterReplicaLogDir, AlterReplicaLogDirTopic
from moldau.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from moldau.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from tests.broker.handlers.wire import Wire
from tests.cluster.asking import until
from tests.faults.clients import create_topic, read_partition, write

TOPIC = "orders"
BROKER = 4
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@contextmanager
def running(folders: list[Path]) -> Iterator[EmbeddedBroker]:
    with moldau.run(data_dir=folders[0], overrides={"log.dirs": ",".join(map(str, folders))}) as broker:
        yield broker


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [tmp_path / "a", tmp_path / "b"]


def home(folders: list[Path]) -> Path:
    (found,) = [folder for folder in folders if (folder / f"{TOPIC}-0").is_dir()]
    return found


def other(folders: list[Path]) -> Path:
    return next(folder for folder in folders if folder != home(folders))


def move(broker: EmbeddedBroker, target: Path, *, partitions: Sequence[int] = (0,)) -> int:
    topics = [AlterReplicaLogDirTopic(name=TOPIC, partitions=[*partitions])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(target), topics=topics)])
    wire = Wire(broker.bootstrap_servers)
    try:
        (result,) = wire.ask(request, 2, AlterReplicaLogDirsResponse).results
        return result.partitions[0].error_code
    finally:
        wire.close()


def described(broker: EmbeddedBroker) -> dict[str, list[tuple[bool, int, int]]]:
    """In each log directory: whether it is a copy on its way, how far it is behind, and how large."""
    wire = Wire(broker.bootstrap_servers)
    try:
        answer = wire.ask(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse)
    finally:
        wire.close()
    return {
        each.log_dir: [
            (row.is_future_key, row.offset_lag, row.partition_size)
            for topic in each.topics
            if topic.name == TOPIC
            for row in topic.partitions
        ]
        for each in answer.results
    }


def is_moved(broker: EmbeddedBroker, target: Path) -> bool:
    found = described(broker)
    return [row[0] for row in found.pop(str(target))] == [False] and not any(found.values())


def limit(broker: EmbeddedBroker, rate: int) -> None:
    change = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[AlterableConfig(RATE, 0, str(rate))])
    wire = Wire(broker.bootstrap_servers)
    try:
        request = IncrementalAlterConfigsRequest(resources=[change], validate_only=False)
        (answer,) = wire.ask(request, 1, IncrementalAlterConfigsResponse).responses
        assert answer.error_code == ErrorCode.NONE
    finally:
        wire.close()


def values_in(broker: EmbeddedBroker) -> list[bytes | None]:
    return [each.value for each in read_partition(broker.bootstrap_servers, TOPIC, 0)]


class Writer(threading.Thread):
    """Idempotent sends one after the other, until it is told to end."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0})
        self._is_over = threading.Event()
        self.acknowledged: list[bytes] = []
        self.failures: list[object] = []

    def run(self) -> None:
        number = 0
        while not self._is_over.is_set():
            value = b"%d" % number
            self._producer.produce(TOPIC, value, partition=0, on_delivery=self._done)
            self._producer.poll(0.001)
            number += 1
        self._producer.flush(30)

    def _done(self, failure: object, message: Message) -> None:
        value = message.value()
        if failure is not None or value is None:
            self.failures.append(failure)
        else:
            self.acknowledged.append(value)

    def go_on(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        until(lambda: len(self.acknowledged) >= wanted)

    def end(self) -> None:
        self._is_over.set()
        self.join()


def test_a_replica_moves_there_and_back_while_it_is_written_to(folders: list[Path]) -> None:
    with running(folders) as broker:
        create_topic(broker.bootstrap_servers, TOPIC, partitions=1)
        writer = Writer(broker.bootstrap_servers)
        writer.start()
        begin = home(folders)
        for _ in range(3):
            writer.go_on(100)
            target = other(folders)
            assert move(broker, target) == ErrorCode.NONE
            until(partial(is_moved, broker, target))
        writer.end()
        assert home(folders) != begin
        assert writer.failures == []
        assert values_in(broker) == writer.acknowledged
        until(lambda: not [*begin.glob(f"{TOPIC}-0*")])
        until(lambda: not (home(folders) / f"{TOPIC}-0" / MARK).exists())
        broker.kill()
        broker.restart()
        assert values_in(broker) == writer.acknowledged


def test_a_log_without_its_beginning_is_the_same_elsewhere(folders: list[Path]) -> None:
    values = [b"%04d" % number for number in range(1_000)]
    with running(folders) as broker:
        create_topic(broker.bootstrap_servers, TOPIC, partitions=1)
        write(broker.bootstrap_servers, TOPIC, values, partition=0, **{"linger.ms": 100})
        wire = Wire(broker.bootstrap_servers)
        row = DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=7)])
        wire.ask(DeleteRecordsRequest(topics=[row], timeout_ms=10_000), 2, DeleteRecordsResponse)
        wire.close()
        target = other(folders)
        assert move(broker, target) == ErrorCode.NONE
        until(lambda: is_moved(broker, target))
        assert values_in(broker) == values[7:]
        broker.restart()
        assert values_in(broker) == values[7:]
        write(broker.bootstrap_servers, TOPIC, [b"more"], partition=0)
        assert values_in(broker) == [*values[7:], b"more"]


def test_a_move_that_waits_for_another_is_told_of_as_well(folders: list[Path]) -> None:
    with running(folders) as broker:
        create_topic(broker.bootstrap_servers, TOPIC, partitions=3)
        here, there = sorted(folders, key=lambda folder: -len([*folder.glob(f"{TOPIC}-*")]))
        partitions = [int(each.name.rpartition("-")[2]) for each in here.glob(f"{TOPIC}-*")]
        for partition in partitions:
            write(broker.bootstrap_servers, TOPIC, [bytes(100_000)] * 50, partition=partition)
        limit(broker, 1_000)
        before = described(broker)[str(there)]
        assert move(broker, there, partitions=partitions) == ErrorCode.NONE

        def future() -> list[tuple[bool, int, int]]:
            return [row for row in described(broker)[str(there)] if row[0]]

        until(lambda: len(future()) == len(partitions) == 2)
        coming = future()
        assert all(lag > 0 for _, lag, _ in coming)
        limit(broker, 1 << 40)
        until(lambda: not described(broker)[str(here)])
        assert len(described(broker)[str(there)]) == len(before) + 2


def test_a_move_is_told_of_held_back_and_given_up(folders: list[Path]) -> None:
    with running(folders) as broker:
        create_topic(broker.bootstrap_servers, TOPIC, partitions=1)
        write(broker.bootstrap_servers, TOPIC, [bytes(100_000)] * 50, partition=0)
        limit(broker, 1_000)
        here, there = home(folders), other(folders)
        assert move(broker, there) == ErrorCode.NONE
        until(lambda: bool(described(broker)[str(there)]))
        time.sleep(1)
        ((is_future, lag, size),) = described(broker)[str(there)]
        assert is_future
        assert 0 < lag <= 50
        assert size < 5_000_000
        assert [row[:2] for row in described(broker)[str(here)]] == [(False, 0)]
        assert move(broker, here) == ErrorCode.NONE
        until(lambda: not described(broker)[str(there)])
        until(lambda: not [*there.glob(f"{TOPIC}-0*")])
        assert move(broker, there) == ErrorCode.NONE
        limit(broker, 1_000_000_000)
        until(lambda: is_moved(broker, there))
        assert len(values_in(broker)) == 50


def test_a_topic_that_is_deleted_on_its_way_leaves_nothing_behind(folders: list[Path]) -> None:
    with running(folders) as broker:
        create_topic(broker.bootstrap_servers, TOPIC, partitions=1)
        write(broker.bootstrap_servers, TOPIC, [bytes(100_000)] * 50, partition=0)
        limit(broker, 1_000)
        there = other(folders)
        move(broker, there)
        until(lambda: bool(described(broker)[str(there)]))
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics([TOPIC])[TOPIC].result()
        limit(broker, 1_000_000_000)
        until(lambda: not [found for folder in folders for found in folder.glob(f"{TOPIC}-0*")])
        assert not any(described(broker).values())


def test_a_move_that_a_stop_interrupts_leaves_nothing_behind(folders: list[Path]) -> None:
    with running(folders) as broker:
        create_topic(broker.bootstrap_servers, TOPIC, partitions=1)
        write(broker.bootstrap_servers, TOPIC, [bytes(100_000)] * 50, partition=0)
        limit(broker, 1_000)
        here, there = home(folders), other(folders)
        move(broker, there)
        until(lambda: bool(described(broker)[str(there)]))
        broker.restart()
        until(lambda: not [*there.glob(f"{TOPIC}-0*")])
        assert home(folders) == here
        assert len(values_in(broker)) == 50
