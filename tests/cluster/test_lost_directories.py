"""A log directory of one broker fails or is full, and another broker leads what was in it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from moldau.embedded.members import new_cluster_id
from moldau.embedded.process import Address
from moldau.embedded.requests import create_topic, describe
from moldau.node.storage.kept_logs import BOOT_FILE, CUT
from moldau.wire.messages import MetadataRequest, ProduceRequest
from moldau.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.cluster.asking import TIMEOUT_MS, ask_address, until
from tests.faults.failing_disk import ALWAYS, FailingDisk, PreloadedBroker
from tests.log.samples import batch

TWO, ONE = 0, 1  # the broker with two log directories, and the one with one
PRODUCE, METADATA, CREATE_TOPICS = 9, 12, 7


def address_of(broker: PreloadedBroker) -> Address:
    host, _, port = broker.bootstrap.rpartition(":")
    return Address(host, int(port))


@contextmanager
def cluster(tmp_path: Path, disk: FailingDisk, *, first: int) -> Iterator[dict[int, PreloadedBroker]]:
    """The first one controls."""
    folders = {TWO: [tmp_path / "a", tmp_path / "b"], ONE: [tmp_path / "c"]}
    (tmp_path / "shared").mkdir()
    member = ["--member-of", str(tmp_path / "shared"), "--members", "2", "--cluster-id", new_cluster_id()]
    with ExitStack() as running:
        brokers: dict[int, PreloadedBroker] = {}
        for broker_id in (first, 1 - first):
            broker = PreloadedBroker(disk, folders[broker_id], overrides={"node.id": str(broker_id)}, arguments=member)
            brokers[broker_id] = running.enter_context(broker)
        until(lambda: all(len(describe(address_of(each), None).broker_ids) == 2 for each in brokers.values()))
        yield brokers


def produce(broker: PreloadedBroker, topic: str) -> int:
    sent = TopicProduceData(name=topic, partition_data=[PartitionProduceData(0, batch([b"x"]))])
    request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[sent])
    row = ask_address(address_of(broker), request, PRODUCE).responses[0].partition_responses[0]
    return int(row.error_code)


def offline(address: Address, names: list[str]) -> list[list[int]]:
    """The replicas of each topic's first partition that nobody can read."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    return [list(topic.partitions[0].offline_replicas) for topic in ask_address(address, request, METADATA).topics]


@pytest.mark.parametrize("controller", [TWO, ONE])
def test_another_broker_leads(tmp_path: Path, controller: int) -> None:
    disk = FailingDisk(tmp_path)
    with cluster(tmp_path, disk, first=controller) as brokers:
        address = address_of(brokers[TWO])
        for number in range(6):
            create_topic(address, f"t{number}", partitions=1, replication_factor=2, config={"flush.messages": 1})
        names = [f"t{number}" for number in range(6)]
        until(lambda: all(describe(address, name).in_sync.get(0) == frozenset({0, 1}) for name in names))
        led = [name for name in names if describe(address, name).leaders[0] == TWO]
        victim = led[0]
        folder = next(each for each in ("a", "b") if (tmp_path / each / f"{victim}-0").is_dir())
        assert produce(brokers[TWO], victim) == 0
        disk.fail(f"*/{folder}/{victim}-0/*.log", "fsync", error=errno.EIO)
        assert produce(brokers[TWO], victim) != 0
        until(lambda: describe(address, victim).leaders[0] == ONE)
        assert describe(address, victim).in_sync[0] == {ONE}
        until(lambda: produce(brokers[ONE], victim) == 0)
        whole = tmp_path / ("b" if folder == "a" else "a")
        until(lambda: (whole / BOOT_FILE).read_bytes() == CUT)
        survivors = [name for name in names if not (tmp_path / folder / f"{name}-0").is_dir()]
        assert survivors
        assert all(describe(address, name).in_sync[0] == {ONE, TWO} for name in survivors)


def test_a_directory_that_failed_before_its_broker_was_taken_in_is_offline(tmp_path: Path) -> None:
    disk = FailingDisk(tmp_path)
    with cluster(tmp_path, disk, first=ONE) as brokers:
        address = address_of(brokers[ONE])
        names = [f"t{number}" for number in range(4)]
        for name in names:
            create_topic(address, name, partitions=1, replication_factor=2, config={})
        until(lambda: all(describe(address, name).in_sync.get(0) == frozenset({0, 1}) for name in names))
        brokers[TWO].stop()
        concerned = [name for name in names if (tmp_path / "a" / f"{name}-0").is_dir()]
        assert concerned
        # Its start makes a folder for this one, fails, and takes long: it tells of the failure before it is taken in.
        fresh = CreatableTopic("fresh", -1, -1, assignments=[CreatableReplicaAssignment(0, [ONE, TWO])])
        ask_address(address, CreateTopicsRequest(topics=[fresh], timeout_ms=TIMEOUT_MS), CREATE_TOPICS)
        disk.fail("*/a/fresh-0", "mkdir", error=errno.EIO)
        disk.fail("*/b/t*-0/*.log", "open", delay_ms=3_000)
        member = ["--member-of", str(tmp_path / "shared"), "--members", "2"]
        folders = [tmp_path / "a", tmp_path / "b"]
        with PreloadedBroker(disk, folders, overrides={"node.id": str(TWO)}, arguments=member) as again:
            assert "is offline with its" in again.output()
            until(lambda: describe(address, None).broker_ids == {ONE, TWO})
            until(lambda: offline(address, concerned) == [[TWO]] * len(concerned))


@pytest.mark.parametrize("controller", [TWO, ONE])
def test_another_broker_leads_while_a_directory_has_no_room(tmp_path: Path, controller: int) -> None:
    disk = FailingDisk(tmp_path)
    with cluster(tmp_path, disk, first=controller) as brokers:
        address = address_of(brokers[TWO])
        names = [f"t{number}" for number in range(6)]
        for name in names:
            create_topic(address, name, partitions=1, replication_factor=2, config={})
        until(lambda: all(describe(address, name).in_sync.get(0) == frozenset({0, 1}) for name in names))
        victim = next(name for name in names if describe(address, name).leaders[0] == TWO)
        folder = next(each for each in ("a", "b") if (tmp_path / each / f"{victim}-0").is_dir())
        concerned = [name for name in names if (tmp_path / folder / f"{name}-0").is_dir()]
        disk.fail(f"*/{folder}/*", "write", error=errno.ENOSPC, times=ALWAYS)
        assert produce(brokers[TWO], victim) != 0
        until(lambda: all(describe(address, name).in_sync[0] == {ONE} for name in concerned))
        assert all(describe(address, name).leaders[0] == ONE for name in concerned)
        until(lambda: produce(brokers[ONE], victim) == 0)
        disk.heal()
        until(lambda: all(describe(address, name).in_sync[0] == {ONE, TWO} for name in names))
        assert produce(brokers[ONE], victim) == 0


def test_who_is_in_sync_alone_keeps_what_it_leads_without_room(tmp_path: Path) -> None:
    disk = FailingDisk(tmp_path)
    with cluster(tmp_path, disk, first=TWO) as brokers:
        address = address_of(brokers[ONE])
        create_topic(address, "both", partitions=1, replication_factor=2, config={})
        until(lambda: describe(address, "both").in_sync.get(0) == frozenset({0, 1}))
        disk.fail("*/both-0/*.log", "write", error=errno.ENOSPC, times=ALWAYS)
        disk.fail("*/moldau-room.tmp", "write", error=errno.ENOSPC, times=ALWAYS)
        first = describe(address, "both").leaders[0]
        assert produce(brokers[first], "both") != 0
        until(lambda: describe(address, "both").leaders[0] == 1 - first)
        assert produce(brokers[1 - first], "both") != 0
        until(lambda: "is full" in brokers[1 - first].output())
        assert (describe(address, "both").leaders[0], describe(address, "both").in_sync[0]) == (
            1 - first,
            frozenset({1 - first}),
        )
        disk.heal()
        until(lambda: describe(address, "both").in_sync[0] == {ONE, TWO})
