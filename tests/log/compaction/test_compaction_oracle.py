"""Apache Kafka's own cleaner beside ours, over the same folder: the same batches must be left."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from moldau.core.config.topic import TopicConfig
from moldau.core.ids import TopicPartition
from moldau.log.checkpoints import CLEANER_OFFSETS, read_offsets, read_partition_metadata
from moldau.log.compaction.cleanable import Extent, measure
from moldau.log.compaction.cleaning import clean_log
from moldau.log.partition_log import PartitionLog
from moldau.wire.batch import DELETE_HORIZON, batches, records
from tests.apache_kafka import ApacheKafka, available

PARTITION = TopicPartition("orders", 0)
FOLDER = "orders-0"
CAP = 1 << 24
WAIT_S = 60.0
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "1.0",  # nothing is ever dirtier than that, so the cleaner waits
    "file.delete.delay.ms": "100",
    "message.timestamp.type": "CreateTime",
}

pytestmark = pytest.mark.skipif(not available(), reason="needs Java and Apache Kafka's jars")


class Left(NamedTuple):
    """One batch after cleaning, but for its horizon, which depends on the moment."""

    base_offset: int
    last_offset: int
    producer: tuple[int, int, int]
    flags: int
    has_horizon: bool
    max_timestamp: int
    records: tuple[tuple[int, int, bytes | None, bytes | None], ...]


def left_in(folder: Path, *, below: int) -> list[Left]:
    found = []
    for path in sorted(folder.glob("*.log")):
        view = memoryview(path.read_bytes())
        for at, header in batches(view):
            if header.base_offset >= below:
                continue
            inside = tuple(
                (
                    r.offset,
                    r.timestamp,
                    None if r.key is None else bytes(r.key),
                    None if r.value is None else bytes(r.value),
                )
                for r in records(view[at : at + header.length_bytes], decompressed_bytes_max=CAP)
            )
            found.append(
                Left(
                    header.base_offset,
                    header.last_offset,
                    (header.producer_id, header.producer_epoch, header.base_sequence),
                    header.attributes & ~DELETE_HORIZON,
                    header.delete_horizon_ms is not None,
                    header.max_timestamp,
                    inside,
                )
            )
    return found


def fill(bootstrap: str) -> None:
    """Keys over and over, tombstones, every codec, idempotent and transactional producers of which one is aborted."""
    noise = Random(42)  # nothing that a codec could make small: the segments are to be full
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        transactional = {"transactional.id": f"tx-{codec}"} if number % 2 else {}
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "linger.ms": 20,
                "enable.idempotence": True,
                **transactional,
            }
        )
        if transactional:
            producer.init_transactions()
        for turn in range(4):
            if transactional:
                producer.begin_transaction()
            for index in range(120):
                value = None if index % 9 == turn else noise.randbytes(4000)
                producer.produce("orders", key=f"k{(index * 7 + number) % 60}", value=value, partition=0)
            producer.flush()
            if transactional:
                producer.abort_transaction() if turn == 1 else producer.commit_transaction()


def wait_for_the_cleaner(kafka: ApacheKafka) -> int:
    deadline = time.monotonic() + WAIT_S
    while True:
        offset = read_offsets(str(kafka.data_directory), CLEANER_OFFSETS).get(PARTITION, 0)
        if offset > 0:
            return offset
        assert time.monotonic() < deadline, "Apache Kafka's cleaner did not come"
        time.sleep(0.1)


def clean_copy(folder: Path) -> PartitionLog:
    """Our cleaner over a copy of the partition's folder."""
    topic_id = read_partition_metadata(str(folder / FOLDER))
    assert topic_id is not None
    log = PartitionLog.open(
        folder / FOLDER,
        partition=PARTITION,
        topic_id=topic_id,
        config=TopicConfig.defaults().override(CONFIGS),
        clean=False,
        recovery_point=0,
        log_start_offset=0,
        now_ms=time.time_ns() // 1_000_000,
    )
    extent = Extent(log.log_start_offset, log.end_offset, log.end_offset)
    now_ms = time.time_ns() // 1_000_000
    dirt = measure(log.segments, config=log.config, checkpoint=None, extent=extent, now_ms=now_ms)
    assert asyncio.run(clean_log(log, dirt, now_ms=now_ms, memory_bytes=1 << 27)) == log.active.base_offset
    return log


def test_apache_kafka_leaves_the_same(tmp_path: Path) -> None:
    with ApacheKafka(properties={"log.cleaner.backoff.ms": "200", "log.initial.task.delay.ms": "100"}) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic("orders", 1, 1, config=CONFIGS)])["orders"].result()
        fill(kafka.bootstrap)
        shutil.copytree(kafka.data_directory / FOLDER, tmp_path / FOLDER)
        written = left_in(tmp_path / FOLDER, below=1 << 60)
        ratio = ConfigEntry("min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[ratio])
        admin.incremental_alter_configs([resource])[resource].result()
        clean_to = wait_for_the_cleaner(kafka)
        kafka.stop()
        theirs = left_in(kafka.data_directory / FOLDER, below=clean_to)
        log = clean_copy(tmp_path)
    assert clean_to == log.active.base_offset
    assert 0 < sum(len(each.records) for each in theirs) < sum(len(each.records) for each in written) / 4
    assert {each.has_horizon for each in theirs} == {True, False}
    assert any(not each.records for each in theirs), "a producer's last batch was to outlive its records"
    assert left_in(tmp_path / FOLDER, below=clean_to) == theirs
