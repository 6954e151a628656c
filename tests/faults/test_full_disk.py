"""Topics and partitions on a disk without room: the answer is true, and nothing is left half made.

The disk is a small tmpfs with few inodes.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import moldau
from moldau.core.errors import ErrorCode
from moldau.embedded import EmbeddedBroker
from moldau.wire.messages import CreateTopicsRequest, DeleteTopicsRequest, MetadataRequest
from moldau.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.wire.messages.create_topics import CreatableTopic
from moldau.wire.messages.delete_topics import DeleteTopicState
from moldau.wire.messages.metadata import MetadataRequestTopic
from tests.differential.batches import batch
from tests.hostile.attacker import Attacker
from tests.hostile.siege import fetch_request, produce_request

INODES = 400  # a partition takes six
ROOM_S_MAX = 30.0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk):
        yield disk


@contextmanager
def mounted(disk: Path) -> Iterator[None]:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size=64m,nr_inodes={INODES}", "tmpfs", str(disk)], check=True, timeout=30
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True, timeout=30)


@contextmanager
def client_of(broker: EmbeddedBroker) -> Iterator[Client]:
    with Attacker((broker.host, broker.port)) as connection:
        yield Client(connection)


class Client:
    def __init__(self, connection: Attacker) -> None:
        self._client = connection

    def create(self, name: str, partitions: int) -> tuple[int, str | None]:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        answer = self._client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0]
        return answer.error_code, answer.error_message

    def extend(self, name: str, count: int) -> tuple[int, str | None]:
        wanted = CreatePartitionsTopic(name=name, count=count, assignments=None)
        answer = self._client.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000), 3).results[0]
        return answer.error_code, answer.error_message

    def delete(self, *names: str) -> list[int]:
        topics = [DeleteTopicState(name=name) for name in names]
        answer = self._client.ask(DeleteTopicsRequest(topics=topics, timeout_ms=10_000), 6)
        return [each.error_code for each in answer.responses]

    def partitions(self, name: str) -> int | ErrorCode:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        answer = self._client.ask(request, 12).topics[0]
        return ErrorCode(answer.error_code) if answer.error_code else len(answer.partitions)

    def produce(self, name: str, value: bytes) -> int:
        records = batch([value], timestamp=1_700_000_000_000)
        answer = self._client.ask(produce_request(name, records), 9)
        return int(answer.responses[0].partition_responses[0].error_code)

    def fetched(self, name: str) -> bytes:
        answer = self._client.ask(fetch_request(name), 11)
        return bytes(answer.responses[0].partitions[0].records or b"")


def folders(disk: Path, name: str) -> list[str]:
    return sorted(path.name for path in disk.glob(f"**/{name}-*") if not path.name.endswith("-delete"))


def test_a_topic_without_room_is_not_created(small_disk: Path) -> None:
    with moldau.run(data_dir=small_disk / "data") as broker, client_of(broker) as client:
        assert client.create("fits", 10) == (ErrorCode.NONE, None)
        code, message = client.create("large", 200)
        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        assert message is not None
        assert "No space left on device" in message
        assert client.partitions("large") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert folders(small_disk, "large") == []
        assert client.produce("fits", b"still served") == ErrorCode.NONE
        assert client.create("small", 3) == (ErrorCode.NONE, None), "what was half made has made room again"


def test_partitions_without_room_are_not_added(small_disk: Path) -> None:
    with moldau.run(data_dir=small_disk / "data") as broker, client_of(broker) as client:
        assert client.create("orders", 3) == (ErrorCode.NONE, None)
        assert client.produce("orders", b"before") == ErrorCode.NONE
        code, _ = client.extend("orders", 200)
        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.partitions("orders") == 3
        assert folders(small_disk, "orders") == ["orders-0", "orders-1", "orders-2"]
        assert b"before" in client.fetched("orders")
        assert client.extend("orders", 5) == (ErrorCode.NONE, None)
    with moldau.run(data_dir=small_disk / "data") as again, client_of(again) as client:
        assert client.partitions("orders") == 5
        assert b"before" in client.fetched("orders")


def fill(disk: Path) -> None:
    with (disk / "filler").open("ab", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(bytes(4096)):
            pass
    assert shutil.disk_usage(disk).free == 0


def test_topics_are_deleted_from_a_full_disk(small_disk: Path) -> None:
    names = [f"topic{number}" for number in range(30)]
    with moldau.run(data_dir=small_disk / "data") as broker, client_of(broker) as client:
        for name in names:
            assert client.create(name, 1) == (ErrorCode.NONE, None)
        large = b"x" * 512 * 1024
        assert client.produce(names[-1], large) == ErrorCode.NONE
        fill(small_disk)
        assert client.produce("topic0", large) == ErrorCode.KAFKA_STORAGE_ERROR
        code, _ = client.create("new", 1)
        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        assert [client.delete(name) for name in names] == [[ErrorCode.NONE]] * len(names)
        assert [client.produce(name, b"too late") for name in names] == [3] * len(names)
        (small_disk / "filler").unlink()
    with moldau.run(data_dir=small_disk / "data") as again, client_of(again) as client:
        assert {client.partitions(name) for name in names} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_broker_starts_on_a_full_disk_and_can_make_room(small_disk: Path, end: str) -> None:
    with moldau.run(data_dir=small_disk / "data") as broker, client_of(broker) as client:
        for name in ("large", "other"):
            assert client.create(name, 3) == (ErrorCode.NONE, None)
        assert client.produce("large", b"x" * 512 * 1024) == ErrorCode.NONE
        assert client.produce("other", b"kept") == ErrorCode.NONE
        fill(small_disk)
        getattr(broker, end)()
        fill(small_disk)
        broker.restart()
        with client_of(broker) as again:
            assert b"kept" in again.fetched("other")
            assert again.delete("large") == [ErrorCode.NONE]
            deadline_s = time.monotonic() + ROOM_S_MAX
            while again.produce("other", b"more") != ErrorCode.NONE:
                assert time.monotonic() < deadline_s, "there is no more room than before"


def test_topics_deleted_with_a_folder_missing_are_gone_and_come_back_empty(tmp_path: Path) -> None:
    names = [f"topic{number}" for number in range(8)]
    with moldau.run(data_dir=tmp_path / "data") as broker, client_of(broker) as client:
        for name in names:
            assert client.create(name, 1) == (ErrorCode.NONE, None)
            assert client.produce(name, b"old") == ErrorCode.NONE
        shutil.rmtree(tmp_path / "data" / "topic2-0")
        assert client.delete(*names) == [ErrorCode.NONE] * len(names)
        assert [client.produce(name, b"too late") for name in names] == [3] * len(names)
        for name in names:
            assert client.create(name, 1) == (ErrorCode.NONE, None)
            assert client.fetched(name) == b""
