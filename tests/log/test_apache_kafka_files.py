"""Apache Kafka and we read each other's folders, and its own tool finds nothing wrong in ours."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.core.config.topic import TopicConfig
from moldau.core.ids import TopicPartition as Partition
from moldau.log.checkpoints import read_partition_metadata
from moldau.log.partition_log import PartitionLog
from moldau.log.producers.end_transaction_marker import encode_marker
from moldau.log.producers.producer_state import Origin
from moldau.wire.batch import CONTROL, TRANSACTIONAL, Codec, Record, batches, build_batch
from tests import apache_kafka
from tests.apache_kafka import ApacheKafka
from tests.log.samples import NOW_MS, PARTITION, batch, config, contents, create

pytestmark = [
    pytest.mark.skipif(not apache_kafka.available(), reason="Apache Kafka needs Java and Maven"),
    pytest.mark.xdist_group("apache-files"),  # one process starts what they share, not three
]

SETTINGS = {"segment.bytes": "1048576", "index.interval.bytes": "1024"}
COUNT = 20_000


def dump(*paths: Path, options: tuple[str, ...] = ()) -> str:
    result = apache_kafka.tool("org.apache.kafka.tools.DumpLogSegments", "--files", ",".join(map(str, paths)), *options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def varied_log(folder: Path) -> PartitionLog:
    """Several segments, every codec, an idempotent producer, a transaction of each kind, times that go back."""
    log = create(folder, config(segment_bytes=4000, index_interval_bytes=200))
    for number in range(60):
        codec = list(Codec)[number % 5]
        times = [NOW_MS + number * 100 - delta * 7 for delta in range(3)]
        sent = batch([b"%d" % number * 30] * 3, timestamps=times, codec=codec, producer=(5, 0, number * 3))
        log.append_as_leader(sent, leader_epoch=number // 25, now_ms=NOW_MS)
    for producer_id, is_commit in ((7, True), (8, False)):
        doubtful = batch([b"in a transaction"], attributes=TRANSACTIONAL, producer=(producer_id, 0, 0))
        log.append_as_leader(doubtful, leader_epoch=3, now_ms=NOW_MS, verified=True)
        key, value = encode_marker(is_commit=is_commit, coordinator_epoch=0)
        marker = build_batch(
            [Record(0, NOW_MS, key, value)],
            base_offset=0,
            producer_id=producer_id,
            producer_epoch=0,
            attributes=TRANSACTIONAL | CONTROL,
        )
        log.append_as_leader(memoryview(marker), leader_epoch=3, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    return log


def test_its_tool_finds_nothing_wrong_in_our_folder(tmp_path: Path) -> None:
    log = varied_log(tmp_path)
    log.close()
    folder = tmp_path / str(PARTITION)
    assert len(log.segments) > 2
    logs, offsets, times = (sorted(folder.glob(f"*.{kind}")) for kind in ("log", "index", "timeindex"))
    printed = dump(*logs, options=("--print-data-log", "--deep-iteration"))
    assert [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", printed, re.MULTILINE)] == list(range(184))
    assert (printed.count("isvalid: true"), printed.count("isvalid: false")) == (64, 0)
    for indexes in (offsets, times):
        checked = dump(*indexes, options=("--index-sanity-check",))
        assert [line for line in checked.splitlines() if "passed sanity check" in line], checked
        assert "Mismatches" not in checked + dump(*indexes, options=("--verify-index-only",))
        assert "out of order" not in checked
    producers = dump(*sorted(folder.glob("*.snapshot")))
    assert "producerId: 5 producerEpoch: 0" in producers
    aborted = dump(*sorted(folder.glob("*.txnindex")))
    assert "producerId: 8" in aborted
    assert "producerId: 7" not in aborted


def await_leader(bootstrap: str, topic: str) -> None:
    """A topic that was just created may refuse the first batch, which then comes after the second."""
    asking = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody"})
    deadline = time.monotonic() + 30
    while True:
        try:
            asking.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)
            break
        except KafkaException:
            assert time.monotonic() < deadline, f"{topic} has no leader"
    asking.close()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """Apache Kafka after it served a few producers and stopped cleanly."""
    with ApacheKafka(directory=tmp_path_factory.mktemp("kafka")) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        topics = [NewTopic("plain", 1, 1, config=SETTINGS), NewTopic("idempotent", 1, 1)]
        for created in admin.create_topics(topics).values():
            created.result()
        await_leader(running.bootstrap, "plain")
        plain = Producer({"bootstrap.servers": running.bootstrap, "batch.size": 3000, "linger.ms": 5})
        for number in range(COUNT):
            if number % 500 == 0:
                plain.flush()
            plain.produce("plain", key=b"k", value=b"%d" % number * (number % 40), partition=0)
        plain.flush()
        settings = {"enable.idempotence": True, "compression.type": "lz4"}
        idempotent = Producer({"bootstrap.servers": running.bootstrap, **settings})
        for number in range(3000):
            idempotent.produce("idempotent", key=b"k", value=b"%d" % number, partition=0, headers={"name": b"value"})
        idempotent.flush()
        running.stop()
        yield running


def open_kafkas(folder: Path, partition: Partition, used: TopicConfig) -> PartitionLog:
    topic_id = read_partition_metadata(str(folder))
    assert topic_id is not None
    return PartitionLog.open(
        folder, partition=partition, topic_id=topic_id, config=used, clean=True, recovery_point=0, log_start_offset=0,
        now_ms=NOW_MS,
    )  # fmt: skip


@pytest.mark.parametrize(("topic", "settings"), [("plain", SETTINGS), ("idempotent", {})])
def test_its_batches_make_the_same_files_here(
    kafka: ApacheKafka, tmp_path: Path, topic: str, settings: dict[str, str]
) -> None:
    partition = Partition(topic, 0)
    theirs = kafka.data_directory / str(partition)
    copy = tmp_path / "copy"
    shutil.copytree(theirs, copy)
    used = TopicConfig.defaults().override(settings)
    source = open_kafkas(copy, partition, used)
    ours = PartitionLog.create(
        tmp_path / str(partition), partition=partition, topic_id=source.topic_id, config=used, now_ms=NOW_MS
    )
    while ours.end_offset < source.end_offset:
        found = source.read(ours.end_offset, bytes_max=100_000, end=source.end_offset, one_batch=True)
        received = memoryview(bytearray(found.read()))
        for at, header in batches(received, partial_tail=True):
            ours.append_as_follower(received[at : at + header.length_bytes], now_ms=NOW_MS)
    ours.close()
    assert sorted(os.listdir(ours.path)) == sorted(os.listdir(theirs))
    different = [
        name for name in os.listdir(theirs) if Path(ours.path, name).read_bytes() != (theirs / name).read_bytes()
    ]
    assert different == []


def test_its_folder_is_read_record_for_record(kafka: ApacheKafka, tmp_path: Path) -> None:
    shutil.copytree(kafka.data_directory / "plain-0", tmp_path / "plain-0")
    log = open_kafkas(tmp_path / "plain-0", Partition("plain", 0), TopicConfig.defaults())
    assert contents(log) == [(number, b"%d" % number * (number % 40)) for number in range(COUNT)]


def test_our_folder_is_served_by_it(kafka: ApacheKafka, tmp_path: Path) -> None:
    theirs = kafka.data_directory / "plain-0"
    shutil.copytree(theirs, tmp_path / "theirs")
    topic_id = read_partition_metadata(str(theirs))
    assert topic_id is not None
    ours = PartitionLog.create(
        tmp_path / "plain-0",
        partition=Partition("plain", 0),
        topic_id=topic_id,
        config=TopicConfig.defaults().override(SETTINGS),
        now_ms=NOW_MS,
    )
    source = open_kafkas(tmp_path / "theirs", Partition("plain", 0), TopicConfig.defaults())
    now_ms = source.segments[0].largest_timestamp()
    values = [b"ours %d " % number * 20 for number in range(5000)]
    for at in range(0, len(values), 10):
        sent = batch(values[at : at + 10], timestamps=[now_ms] * 10, codec=list(Codec)[at // 10 % 5])
        ours.append_as_leader(sent, leader_epoch=0, now_ms=now_ms)
    ours.close()
    shutil.rmtree(theirs)
    shutil.copytree(ours.path, theirs)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        path = kafka.data_directory / name
        path.write_text(re.sub(r"plain 0 \d+", f"plain 0 {len(values)}", path.read_text()))
    kafka.start()
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition("plain", 0, 0)])
    found: list[tuple[int | None, bytes | None]] = []
    while len(found) < len(values) and (messages := consumer.consume(1000, timeout=30)):
        found += [(message.offset(), message.value()) for message in messages if message.error() is None]
    assert consumer.get_watermark_offsets(TopicPartition("plain", 0)) == (0, len(values))
    consumer.close()
    assert found == list(enumerate(values))
