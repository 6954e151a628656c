"""What a client and an operator see of a disk that fails: one directory of two, the only one, a full or slow one."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.core.errors import ErrorCode
from moldau.wire.batch import Record, build_batch
from moldau.wire.messages import MetadataRequest
from moldau.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.wire.messages.delete_topics import DeleteTopicsRequest
from moldau.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from moldau.wire.messages.metadata import MetadataRequestTopic
from tests.faults.clients import PATIENT, create_topic, end_offset, read_partition, write
from tests.faults.failing_disk import ALWAYS, FailingDisk, PreloadedBroker
from tests.hostile.attacker import Attacker
from tests.hostile.siege import fetch_request, produce_request

WAIT_S_MAX = 30.0
SLOW_FSYNC_MS = 1_500


@pytest.fixture
def disk(tmp_path: Path) -> FailingDisk:
    return FailingDisk(tmp_path)


def address(broker: PreloadedBroker) -> tuple[str, int]:
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)


def records(value: bytes) -> bytes:
    return bytes(build_batch([Record(0, int(time.time() * 1000), None, value)]))


def produced(client: Attacker, topic: str, value: bytes) -> ErrorCode:
    answer = client.ask(produce_request(topic, records(value)), 9)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def eventually(check: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_a_failed_fsync_takes_one_of_two_directories_offline(tmp_path: Path, disk: FailingDisk) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    safe = {"flush.messages": "1"}
    with PreloadedBroker(disk, folders) as broker, Attacker(address(broker)) as client:
        for name in ("first", "second"):
            create_topic(broker.bootstrap, name, config=safe)
        assert [path.parent.name for name in ("first", "second") for path in tmp_path.glob(f"*/{name}-0")] == ["a", "b"]
        assert produced(client, "second", b"safe") is ErrorCode.NONE
        failing = disk.fail("*/b/second-0/*.log", "fsync", error=errno.EIO)
        assert produced(client, "second", b"lost") is ErrorCode.KAFKA_STORAGE_ERROR
        assert disk.hits(failing) == 1
        disk.heal()
        # The fsync would succeed now, and say nothing of the pages that the first one lost.
        assert produced(client, "second", b"lost") is ErrorCode.KAFKA_STORAGE_ERROR
        fetched = client.ask(fetch_request("second"), 11)
        assert fetched.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert produced(client, "first", b"next door") is ErrorCode.NONE
        eventually(lambda: leader(client, "second") == (-1, ErrorCode.LEADER_NOT_AVAILABLE, [0]), "still has a leader")
        assert leader(client, "first") == (0, ErrorCode.NONE, [])
        logs = client.ask(DescribeLogDirsRequest(topics=None), 4).results
        assert {Path(each.log_dir).name: each.error_code for each in logs} == {
            "a": 0,
            "b": ErrorCode.KAFKA_STORAGE_ERROR,
        }
        for number in range(3):
            create_topic(broker.bootstrap, f"later-{number}")
            assert (tmp_path / "a" / f"later-{number}-0").is_dir()
        assert broker.stop() == 0
        assert not (tmp_path / "b" / ".kafka_cleanshutdown").exists()
    with PreloadedBroker(disk, folders) as broker, Attacker(address(broker)) as client:
        assert leader(client, "second") == (0, ErrorCode.NONE, [])
        assert read_partition(broker.bootstrap, "second")[0].value == b"safe"
        assert produced(client, "second", b"again") is ErrorCode.NONE
        assert "Traceback" not in broker.output()


def leader(client: Attacker, topic: str) -> tuple[int, int, list[int]]:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (partition,) = client.ask(asked, 9).topics[0].partitions
    return partition.leader_id, partition.error_code, list(partition.offline_replicas)


@pytest.mark.parametrize("where", ["*/t-0/*.log", "*-checkpoint*", "*/moldau-metadata.db-wal"])
def test_without_a_directory_the_broker_ends_with_one_line(tmp_path: Path, disk: FailingDisk, where: str) -> None:
    soon = {"log.flush.offset.checkpoint.interval.ms": "200"}
    with PreloadedBroker(disk, [tmp_path / "data"], overrides=soon) as broker:
        create_topic(broker.bootstrap, "t", config={"flush.messages": "1"})
        write(broker.bootstrap, "t", [b"kept"])
        disk.fail(where, "fsync", error=errno.EIO, times=ALWAYS)
        with Attacker(address(broker)) as client:
            topic = CreatableTopic(name="u", num_partitions=1, replication_factor=1)
            for request, version in (
                (produce_request("t", records(b"perhaps")), 9),
                (CreateTopicsRequest(topics=[topic], timeout_ms=1_000), 7),
            ):
                client.tell(request, version)
                client.answer()
        assert broker.process.wait(WAIT_S_MAX) == 1
        lines = broker.output().splitlines()
        assert [line for line in lines if line.startswith("moldau start: all log directories have failed")], lines
        assert "Traceback" not in broker.output()
    disk.heal()
    with PreloadedBroker(disk, [tmp_path / "data"]) as broker:
        assert read_partition(broker.bootstrap, "t")[0].value == b"kept"


def test_a_full_disk_stays_in_use(tmp_path: Path, disk: FailingDisk) -> None:
    with PreloadedBroker(disk, [tmp_path / "data"]) as broker, Attacker(address(broker)) as client:
        create_topic(broker.bootstrap, "t")
        write(broker.bootstrap, "t", [b"a"])
        full = disk.fail("*/data/*", "write", error=errno.ENOSPC, times=ALWAYS)
        for _ in range(3):
            assert produced(client, "t", b"no room") is ErrorCode.KAFKA_STORAGE_ERROR
        assert disk.hits(full) >= 3
        fetched = client.ask(fetch_request("t"), 11).responses[0].partitions[0]
        assert (fetched.error_code, fetched.high_watermark) == (ErrorCode.NONE, 1)
        assert b"a" in bytes(fetched.records)
        assert leader(client, "t") == (0, ErrorCode.NONE, [])
        disk.heal()
        assert produced(client, "t", b"b") is ErrorCode.NONE
        assert [each.value for each in read_partition(broker.bootstrap, "t")] == [b"a", b"b"]
        said = [line for line in broker.output().splitlines() if " is full: " in line]
        assert len(said) == 1
        eventually(lambda: "has room again" in broker.output(), "the directory is still taken for full")
        assert broker.stop() == 0


def test_an_abort_that_can_not_be_noted_is_not_made(tmp_path: Path, disk: FailingDisk) -> None:
    """The marker made the records of the transaction readable before its entry in the index was written."""
    with PreloadedBroker(disk, [tmp_path / "data"]) as broker:
        create_topic(broker.bootstrap, "t")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "x", "linger.ms": 0})
        producer.init_transactions(WAIT_S_MAX)
        producer.begin_transaction()
        producer.produce("t", b"aborted", partition=0)
        assert producer.flush(WAIT_S_MAX) == 0
        refused = disk.fail("*/t-0/*.txnindex", "write", error=errno.ENOSPC, times=3)
        producer.abort_transaction(WAIT_S_MAX)
        write(broker.bootstrap, "t", [b"plain"])
        eventually(lambda: disk.hits(refused) == 3, "the marker was not tried again")
        eventually(lambda: end_offset(broker.bootstrap, "t") == 3, "the marker is still missing")
        assert committed(broker.bootstrap) == [b"plain"]
        broker.kill()
    with PreloadedBroker(disk, [tmp_path / "data"]) as broker:
        assert committed(broker.bootstrap) == [b"plain"]


def committed(bootstrap: str) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed"})
    try:
        consumer.assign([TopicPartition("t", 0, 0)])
        found: list[bytes | None] = []
        while not found or found[-1] != b"plain":
            message = consumer.poll(WAIT_S_MAX)
            assert message is not None, found
            found.append(message.value())
        return found
    finally:
        consumer.close()


def test_a_producer_that_leaves_takes_nobodys_fsync_along(tmp_path: Path, disk: FailingDisk) -> None:
    """Both wait for the same fsync: the one that is next, while a slow one is under way."""
    with PreloadedBroker(disk, [tmp_path / "data"]) as broker:
        create_topic(broker.bootstrap, "t", config={"flush.messages": "1"})
        write(broker.bootstrap, "t", [b"a"])
        slow = disk.fail("*/t-0/*.log", "fsync", delay_ms=SLOW_FSYNC_MS, times=1)
        with Attacker(address(broker)) as first, Attacker(address(broker)) as stays:
            first.tell(produce_request("t", records(b"b")), 9)
            eventually(lambda: disk.hits(slow) == 1, "no fsync")
            leaves = Attacker(address(broker))
            leaves.tell(produce_request("t", records(b"c")), 9)
            eventually(lambda: log_size(tmp_path) == 3, "not appended")
            stays.tell(produce_request("t", records(b"d")), 9)
            eventually(lambda: log_size(tmp_path) == 4, "not appended")
            leaves.socket.close()
            assert isinstance(stays.answer(), bytes)
            assert isinstance(first.answer(), bytes)
            assert produced(stays, "t", b"e") is ErrorCode.NONE
        assert "Traceback" not in broker.output()


def log_size(tmp_path: Path) -> int:
    data = (tmp_path / "data" / "t-0" / ("0" * 20 + ".log")).read_bytes()
    count = at = 0
    while at < len(data):
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        count += 1
    return count


def test_an_idempotent_producer_on_a_failing_disk_writes_once(tmp_path: Path, disk: FailingDisk) -> None:
    with PreloadedBroker(disk, [tmp_path / "data"]) as broker:
        create_topic(broker.bootstrap, "t")
        disk.fail("*/t-0/*.log", "write", error=errno.ENOSPC, how=2, skip=5, times=4)
        values = [b"value %d" % number for number in range(30)]
        write(broker.bootstrap, "t", values, **{"enable.idempotence": True, **PATIENT})
        assert [each.value for each in read_partition(broker.bootstrap, "t")] == values
        assert broker.stop() == 0
    with PreloadedBroker(disk, [tmp_path / "data"]) as broker:
        assert [each.value for each in read_partition(broker.bootstrap, "t")] == values


def test_a_crash_between_the_deletion_of_a_topic_and_that_of_its_folders_leaves_nothing_to_a_later_one(
    tmp_path: Path, disk: FailingDisk
) -> None:
    data, never_ms = tmp_path / "data", 600_000
    with PreloadedBroker(disk, [data]) as broker, Attacker(address(broker)) as client:
        for name in ("gone", "kept"):
            create_topic(broker.bootstrap, name, partitions=2)
            assert produced(client, name, b"old") is ErrorCode.NONE
        moving = disk.fail("*/gone-*", "rename", delay_ms=never_ms, times=ALWAYS)
        client.tell(DeleteTopicsRequest(topic_names=["gone"], timeout_ms=60_000), 2)
        eventually(lambda: disk.hits(moving) > 0, "the deletion never came to the folders")
        broker.kill()
        disk.heal()
    folders, lines = {"gone-0", "gone-1", "kept-0", "kept-1"}, []
    assert {path.name for path in data.iterdir() if path.is_dir()} == folders
    for _ in range(2):
        with PreloadedBroker(disk, [data]) as broker:
            assert [each.value for each in read_partition(broker.bootstrap, "kept")] == [b"old"]
            found = {path.name for path in data.iterdir() if path.is_dir()}
            assert found & folders == {"kept-0", "kept-1"}
            assert sorted(name[:7] for name in found if name.endswith("-stray")) == ["gone-0.", "gone-1."]
            lines.append(broker.output().count("belong to no topic"))
            broker.stop()
    assert lines == [1, 0]
    with PreloadedBroker(disk, [data]) as broker:
        create_topic(broker.bootstrap, "gone", partitions=2)
        assert [end_offset(broker.bootstrap, "gone", index) for index in range(2)] == [0, 0]
        write(broker.bootstrap, "gone", [b"new"])
        assert [each.value for each in read_partition(broker.bootstrap, "gone")] == [b"new"]


def test_a_folder_of_no_topic_that_says_nonsense_or_cant_be_moved_keeps_no_broker_from_starting(
    tmp_path: Path, disk: FailingDisk
) -> None:
    data = tmp_path / "data"
    with PreloadedBroker(disk, [data]) as broker:
        create_topic(broker.bootstrap, "kept")
        write(broker.bootstrap, "kept", [b"old"])
        assert broker.stop() == 0
    for name in ("gone-0", "mounted-0"):
        (data / name).mkdir()
        (data / name / "partition.metadata").write_text("version: 0\ntopic_id: half of")
    disk.fail("*/mounted-0", "rename", error=errno.EBUSY, times=ALWAYS)
    with PreloadedBroker(disk, [data]) as broker:
        assert [each.value for each in read_partition(broker.bootstrap, "kept")] == [b"old"]
        assert [path.name[:7] for path in data.glob("*-stray")] == ["gone-0."]
        assert (data / "mounted-0").is_dir()
        said = [line for line in broker.output().splitlines() if "no topic" in line]
        assert [("mounted-0" in line, "-stray" in line) for line in said] == [(True, False), (False, True)]
        assert broker.stop() == 0
