"""The folders follow the cluster's image, also when the disk doesn't at first."""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import os
import shutil
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.topics import reconciliation
from moldau.broker.topics.partitions import Partitions
from moldau.broker.topics.reconciliation import Reconciliation
from moldau.broker.topics.startup import GivenUp, open_topics
from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.core.clock import SystemClock
from moldau.core.config.topic import TopicConfig
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicId
from moldau.log.checkpoints import write_leader_epochs
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.meta_properties import UnusableDirectory
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.partition_log import PartitionLog
from moldau.replication.partition import Partition
from tests.log.samples import batch

BROKER_ID = 1
NOW_MS = 1_700_000_000_000
HERE = PartitionImage(replicas=(BROKER_ID,), isr=(BROKER_ID,), leader=BROKER_ID)
DEFAULTS = TopicConfig.defaults()
NOTHING = ClusterImage()


def topic_id(name: str, generation: int = 0) -> TopicId:
    return TopicId(f"{name}{generation}".encode().rjust(16))


def image(*, generation: int = 0, changed: set[str] | None = None, **partition_counts: int) -> ClusterImage:
    topics = {
        name: TopicImage(name, topic_id(name, generation), (HERE,) * count) for name, count in partition_counts.items()
    }
    return ClusterImage(
        topics=topics,
        topic_ids={topic.id: name for name, topic in topics.items()},
        changed_topics=frozenset(topics if changed is None else changed),
    )


class Node:
    """Tables, folders and what keeps them equal, without a network."""

    def __init__(self, directories: LogDirectories, thread: ThreadPoolExecutor) -> None:
        self.directories = directories
        self.partitions = Partitions()
        self.reconciliation = Reconciliation(
            BROKER_ID, self.partitions, directories, thread=thread, clock=SystemClock()
        )
        self.image: ClusterImage = NOTHING

    async def open(self, first: ClusterImage, *, threads: int = 2) -> None:
        self.image = first
        opened = await open_topics(
            first,
            broker_id=BROKER_ID,
            directories=self.directories,
            defaults=DEFAULTS,
            threads_per_directory=threads,
            clock=SystemClock(),
        )
        self.reconciliation.adopt(first, opened)

    def publish(self, new: ClusterImage) -> None:
        old, self.image = self.image, new
        self.reconciliation.follow(old, new, defaults=DEFAULTS)

    async def follow(self, new: ClusterImage) -> None:
        self.publish(new)
        await self.reconciliation.settled()

    async def complete(self) -> None:
        self.reconciliation.complete(NOW_MS)
        await self.reconciliation.settled()

    def names(self) -> list[str]:
        return sorted(str(each.log.partition) for each in self.partitions.all())


@asynccontextmanager
async def node(*paths: Path) -> AsyncIterator[Node]:
    directories = LogDirectories.open(paths, node_id=BROKER_ID)
    with ThreadPoolExecutor(1) as thread:
        running = Node(directories, thread)
        yield running
        await running.reconciliation.stop()
    directories.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(bounded())


def fill_disk(disk: pytest.MonkeyPatch, *, but_for: str = "") -> None:
    make = os.mkdir

    def full(path: str, mode: int = 0o777) -> None:
        if not but_for or but_for not in path:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        make(path, mode)

    disk.setattr(os, "mkdir", full)


def append(partition: Partition | None, value: bytes = b"old") -> None:
    assert partition is not None
    partition.append(batch([value]), now_ms=NOW_MS)


def test_deleting_topics_with_one_folder_missing_removes_them_all(tmp_path: Path) -> None:
    names = [f"topic{number}" for number in range(8)]

    async def test() -> None:
        async with node(tmp_path) as broker:
            counts = dict.fromkeys(names, 1)
            await broker.follow(image(changed=None, generation=0, **counts))
            shutil.rmtree(tmp_path / "topic2-0")
            held = [broker.partitions.get(name, 0) for name in names]
            broker.publish(image(changed=set(names)))
            assert broker.names() == [], "they stop serving before any folder is touched"
            assert not [one for one in held if one is None or one.is_leader]
            await broker.reconciliation.settled()
            assert [path.name for path in tmp_path.glob("topic*-0")] == []

    run(test)


def test_a_topic_created_anew_never_meets_the_old_folder(tmp_path: Path) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            await broker.follow(image(orders=3))
            append(broker.partitions.get("orders", 0))
            await broker.follow(image(changed={"orders"}))
            await broker.follow(image(orders=3, generation=1))
            append(broker.partitions.get("orders", 1))
            await broker.follow(image(orders=3, generation=2))  # deleted and created between two images
            new = [broker.partitions.get("orders", index) for index in range(3)]
            assert [one and (one.topic_id, one.log.end_offset) for one in new] == [(topic_id("orders", 2), 0)] * 3

    run(test)


def test_a_folder_that_cannot_be_moved_is_retried_and_keeps_its_name_from_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rename = os.rename

    def stuck(source: str, target: str) -> None:
        if source.endswith("/orders-0"):
            raise OSError(errno.ENOSPC, "No space left on device", source)
        rename(source, target)

    async def test() -> None:
        async with node(tmp_path) as broker:
            await broker.follow(image(orders=2, other=1))
            append(broker.partitions.get("orders", 0))
            with monkeypatch.context() as disk:
                disk.setattr(os, "rename", stuck)
                await broker.follow(image(changed={"orders", "other"}))
                await broker.complete()
                assert [path.name for path in tmp_path.glob("o*-[01]")] == ["orders-0"]
                assert len([line for line in caplog.messages if "folders of topic orders stay" in line]) == 1
                await broker.follow(image(orders=1, generation=1))
                assert broker.partitions.get("orders", 0) is None, "its folder's name is taken by the old records"
            await broker.complete()
            anew = broker.partitions.get("orders", 0)
            assert anew is not None
            assert anew.log.end_offset == 0
            await broker.complete()
            assert (tmp_path / "orders-0").exists(), "the deletion that was tried again found another topic there"

    run(test)


def test_a_file_in_the_place_of_a_folder_makes_room(tmp_path: Path) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            await broker.follow(image(orders=1))
            shutil.rmtree(tmp_path / "orders-0")
            (tmp_path / "orders-0").write_text("not a folder")
            await broker.follow(image(changed={"orders"}))
            await broker.follow(image(orders=1, generation=1))
            append(broker.partitions.get("orders", 0))
            assert [path.read_text() for path in tmp_path.glob("orders-0.*-stray")] == ["not a folder"]

    run(test)


def test_a_topic_without_a_place_is_made_later_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            with monkeypatch.context() as disk:
                fill_disk(disk, but_for="lucky")
                await broker.follow(image(orders=100, lucky=1))
                await broker.complete()
            assert broker.partitions.get("lucky", 0) is not None
            assert broker.partitions.get("orders", 0) is None
            assert len([line for line in caplog.messages if line.startswith("topic orders lacks partitions")]) == 1
            assert not [line for line in caplog.records if line.exc_info]
            await broker.complete()
            assert all(broker.partitions.get("orders", index) is not None for index in range(100))
            assert broker.directories.failures == {}

    run(test)


def test_a_topic_that_was_deleted_meanwhile_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            with monkeypatch.context() as disk:
                fill_disk(disk)
                await broker.follow(image(orders=1))
            await broker.follow(image(changed={"orders"}))
            await broker.complete()
            assert broker.names() == []

    run(test)


def test_a_topic_that_is_deleted_while_it_is_made_leaves_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            broker.publish(image(orders=200))
            while not list(tmp_path.glob("orders-*")):  # noqa: ASYNC110 - the folders are made by a thread
                await asyncio.sleep(0)
            await broker.follow(image(changed={"orders"}))
            assert list(tmp_path.glob("orders-?")) + list(tmp_path.glob("orders-??")) == []

    run(test)


def test_a_stop_finishes_deletions(tmp_path: Path) -> None:
    async def test() -> None:
        counts = {f"topic{number}": 20 for number in range(20)}
        async with node(tmp_path) as broker:
            await broker.follow(image(changed=None, generation=0, **counts))
            broker.publish(image(changed=set(counts)))
            assert list(tmp_path.glob("topic*-0")), "their folders are still to be moved"
        left = [path.name for path in tmp_path.glob("topic*") if not path.name.endswith("-delete")]
        assert left == [], "the next start would leave them alone"

    run(test)


def test_a_small_topic_does_not_wait_for_a_large_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            broker.publish(image(large=1_000))
            broker.publish(image(large=1_000, small=1, changed={"small"}))
            small = broker.reconciliation.expect(topic_id("small"), range(1), never)
            large = broker.reconciliation.expect(topic_id("large"), range(1_000), never)
            assert await small is None
            assert not large.done()
            assert broker.partitions.why_missing("large", 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert broker.partitions.why_missing(topic_id("large"), 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert broker.partitions.why_missing("large", 1_000) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert broker.partitions.why_missing(topic_id("nope"), 0) is ErrorCode.UNKNOWN_TOPIC_ID
            assert await large is None
            assert len(broker.names()) == 1_001

    run(test)


async def never() -> None:
    raise AssertionError("nothing went wrong, so nothing is undone")


def test_a_creation_without_room_is_undone_and_serves_nobody_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:

            async def undo() -> None:
                assert broker.names() == []
                broker.publish(image(changed={"orders"}))

            with monkeypatch.context() as disk:
                fill_disk(disk, but_for="orders-1")
                broker.publish(image(orders=40))
                reason = await broker.reconciliation.expect(topic_id("orders"), range(40), undo)
            assert reason is not None
            assert "No space left on device" in reason
            await broker.reconciliation.settled()
            await broker.complete()
            assert (broker.names(), list(tmp_path.glob("orders-?"))) == ([], [])

    run(test)


def test_nothing_of_a_creation_serves_while_it_can_be_undone(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "partition.metadata").write_text("damaged")

    async def test() -> None:
        async with node(tmp_path) as broker:

            async def undo() -> None:
                broker.publish(image(changed={"orders"}))

            broker.publish(image(orders=200))
            outcome = broker.reconciliation.expect(topic_id("orders"), range(200), undo)
            while not outcome.done():
                broker.reconciliation.complete(NOW_MS)
                assert broker.names() == []
                await asyncio.sleep(0)
            assert "partition.metadata" in str(outcome.result())

    run(test)


def test_an_undoing_that_fails_is_tried_until_it_gets_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reconciliation, "UNDO_RETRY_S", 0.01)

    async def test() -> None:
        tries = 0
        undone = asyncio.Event()
        async with node(tmp_path) as broker:

            async def undo() -> None:
                nonlocal tries
                tries += 1
                if tries < 3:
                    raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "database or disk is full")
                broker.publish(image(changed={"orders"}))
                undone.set()

            with monkeypatch.context() as disk:
                fill_disk(disk)
                broker.publish(image(orders=1))
                assert await broker.reconciliation.expect(topic_id("orders"), range(1), undo) is not None
            await broker.complete()  # there is room again, but the client was told that there is no such topic
            assert broker.names() == []
            await undone.wait()
            assert (tries, broker.names()) == (3, [])
            assert len([line for line in caplog.messages if "not be given up either yet" in line]) == 1

    run(test)


def test_partitions_that_cannot_be_added_are_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            await broker.follow(image(orders=2))
            append(broker.partitions.get("orders", 1))

            async def undo() -> None:
                broker.publish(image(orders=2))

            with monkeypatch.context() as disk:
                fill_disk(disk, but_for="orders-2")
                broker.publish(image(orders=40))
                reason = await broker.reconciliation.expect(topic_id("orders"), range(2, 40), undo)
            assert reason is not None
            await broker.reconciliation.settled()
            await broker.complete()
            assert broker.names() == ["orders-0", "orders-1"]
            kept = broker.partitions.get("orders", 1)
            assert kept is not None
            assert (kept.is_leader, kept.log.end_offset) == (True, 1)
            assert sorted(path.name for path in tmp_path.glob("orders-?")) == ["orders-0", "orders-1"]

    run(test)


def test_a_start_without_room_serves_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            await broker.follow(image(orders=1))
        async with node(tmp_path) as broker:
            with monkeypatch.context() as disk:
                fill_disk(disk)
                with caplog.at_level(logging.INFO):
                    await broker.open(image(orders=1, more=1))
            assert [line for line in caplog.messages if line.startswith("opened 1 of 2 logs")]
            assert broker.names() == ["orders-0"]
            await broker.complete()
            assert broker.names() == ["more-0", "orders-0"]

    run(test)


def test_a_start_with_records_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            await broker.follow(image(orders=1))
        (tmp_path / "orders-0" / "partition.metadata").write_text("garbage")
        async with node(tmp_path) as broker:
            with pytest.raises(UnusableDirectory, match="orders-0"):
                await broker.open(image(orders=1))

    run(test)


def test_a_start_opens_the_logs_of_all_folders_and_says_what_it_did(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]

    async def test() -> None:
        async with node(*paths) as broker:
            await broker.follow(image(orders=200))
            for partition in broker.partitions.all():
                append(partition)
            for directory in broker.directories._directories.values():
                directory.lock.release()  # as the end of the process would
            written = sum(partition.log.size_bytes() for partition in broker.partitions.all())
            with (paths[0] / "orders-0" / "00000000000000000000.log").open("ab") as torn:
                torn.write(b"x" * 10)
            async with node(*paths) as again:
                with caplog.at_level(logging.INFO):
                    await again.open(image(orders=200))
                assert len(again.names()) == 200
                assert all(partition.log.end_offset == 1 for partition in again.partitions.all())
            (line,) = [line for line in caplog.messages if line.startswith("opened 200 logs")]
            assert f"{written + 10} bytes scanned, 10 bytes cut" in line

    run(test)


def test_a_disk_that_fails_while_the_epoch_is_noted_gets_no_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(path: str, epochs: LeaderEpochs) -> None:
        if path.startswith(f"{tmp_path}/bad/"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        write_leader_epochs(path, epochs)

    async def test() -> None:
        monkeypatch.setattr("moldau.log.partition_log.write_leader_epochs", failing)
        async with node(tmp_path / "bad", tmp_path / "good") as broker:
            await broker.follow(image(orders=2))
            assert list(broker.directories.failures) == [tmp_path / "bad"]
            await broker.complete()
            served = {each.log.path: each.is_leader for each in broker.partitions.all()}
            assert served == {f"{tmp_path}/good/orders-{index}": True for index in range(2)}
        assert not list((tmp_path / "bad").glob("orders-*"))

    run(test)
    assert "bad is offline" in caplog.text


def test_a_stop_waits_for_the_log_that_is_being_opened_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count, list_folder, opened = 200, os.listdir, []

    async def test() -> None:
        async with node(tmp_path) as broker:
            await broker.follow(image(orders=count))
        loop, stop = asyncio.get_running_loop(), asyncio.Event()

        def slow(path: str) -> list[str]:
            opened.append(path)
            loop.call_soon_threadsafe(stop.set)
            time.sleep(0.02)
            return list_folder(path)

        directories = LogDirectories.open([tmp_path], node_id=BROKER_ID)
        monkeypatch.setattr(os, "listdir", slow)
        with pytest.raises(GivenUp):
            await open_topics(
                image(orders=count),
                broker_id=BROKER_ID,
                directories=directories,
                defaults=DEFAULTS,
                threads_per_directory=1,
                clock=SystemClock(),
                stop=stop,
            )
        directories.end()
        assert 0 < len(opened) < count / 2
        assert (tmp_path / ".kafka_cleanshutdown").exists(), "what was not opened is as it was"

    run(test)


def test_logs_of_a_deleted_topic_are_given_up_and_freed_one_by_one_with_turns_of_the_loop_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With slices of no time at all, so that each log is a slice, whatever the machine takes for it."""
    monkeypatch.setattr("moldau.coordinator.long_work.SLICE_S", 0.0)
    count = 100
    turn, retired, freed = 0, list[int](), list[int]()
    retire = LogDirectories.retire

    def noted(directories: LogDirectories, log: PartitionLog) -> None:
        retired.append(turn)
        retire(directories, log)

    monkeypatch.setattr(LogDirectories, "retire", noted)

    async def test() -> None:
        nonlocal turn
        async with node(tmp_path) as here:
            here.publish(image(orders=count))
            await here.reconciliation.settled()
            for partition in here.partitions.all():
                partition.log.on_failure = functools.partial(print)  # which is freed with the log
                weakref.finalize(partition.log.on_failure, lambda: freed.append(turn))
            del partition
            here.publish(image(changed={"orders"}))
            while len(freed) < count:
                await asyncio.sleep(0)
                turn += 1

    asyncio.run(asyncio.wait_for(test(), 20))
    assert len(set(retired)) == count
    assert len(set(freed)) == count


OTHER_ID = 2
STATES = {
    "leader": PartitionImage((BROKER_ID, OTHER_ID), (BROKER_ID, OTHER_ID), BROKER_ID),
    "follower": PartitionImage((BROKER_ID, OTHER_ID), (BROKER_ID, OTHER_ID), OTHER_ID, leader_epoch=1),
    "leader again": PartitionImage((BROKER_ID, OTHER_ID), (BROKER_ID, OTHER_ID), BROKER_ID, leader_epoch=2),
    "elsewhere": PartitionImage((OTHER_ID,), (OTHER_ID,), OTHER_ID, leader_epoch=3),
}


def in_state(*names: str) -> ClusterImage:
    """One topic, with a partition in each of these states."""
    topic = TopicImage("orders", topic_id("orders"), tuple(STATES[name] for name in names))
    return ClusterImage(topics={"orders": topic}, topic_ids={topic.id: "orders"}, changed_topics=frozenset({"orders"}))


def test_roles_follow_the_image_and_whoever_listens_is_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            told: list[tuple[int, bool, int]] = []
            broker.partitions.leadership_listeners.append(
                lambda partition, is_leader: told.append((partition.index, is_leader, partition.leadership.leader_id))
            )
            await broker.follow(in_state("leader", "elsewhere"))
            assert broker.names() == ["orders-0"]
            append(broker.partitions.get("orders", 0))
            await broker.follow(in_state("follower", "elsewhere"))
            await broker.follow(in_state("leader again", "leader"))
            led = broker.partitions.get("orders", 0)
            assert led is not None
            assert led.log.end_offset == 1, "it keeps its log through all roles"
            await broker.follow(in_state("elsewhere", "leader"))
            assert told == [
                (0, True, BROKER_ID), (0, False, OTHER_ID), (0, True, BROKER_ID), (1, True, BROKER_ID), (0, False, -1)
            ]  # fmt: skip
            assert broker.names() == ["orders-1"]
            assert not (tmp_path / "orders-0").exists()
            await broker.follow(in_state("leader", "leader"))
            back = broker.partitions.get("orders", 0)
            assert back is not None
            assert back.log.end_offset == 0, "what was deleted does not come back"

    run(test)


@pytest.mark.parametrize("fails", ["the role", "who listens"])
def test_a_partition_that_cannot_follow_the_image_is_tried_again_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fails: str
) -> None:
    """A mistake of ours in one of them."""
    told: list[tuple[int, bool]] = []
    faulty = {1}

    def listen(partition: Partition, is_leader: bool) -> None:
        if fails == "who listens" and partition.index in faulty:
            raise AssertionError("planted")
        told.append((partition.index, is_leader))

    lead = Partition.lead

    def lead_or_fail(partition: Partition, *given: Any, **named: Any) -> None:
        if fails == "the role" and partition.index in faulty:
            raise AssertionError("planted")
        lead(partition, *given, **named)

    async def test() -> None:
        async with node(tmp_path) as broker:
            await broker.follow(in_state("leader", "leader", "leader"))
            broker.partitions.leadership_listeners.append(listen)
            monkeypatch.setattr(Partition, "lead", lead_or_fail)
            await broker.follow(in_state("follower", "follower", "follower"))
            assert sorted(told) == [(0, False), (2, False)]
            assert "partition 1 of topic orders can't be made what the cluster says; it is tried again" in caplog.text
            await broker.complete()
            assert sorted(told) == [(0, False), (2, False)]
            faulty.clear()
            await broker.complete()
            assert sorted(told) == [(0, False), (1, False), (2, False)]
            assert [each.is_leader for each in broker.partitions.all()] == [False] * 3
            await broker.complete()
            assert len(told) == 3

    run(test)


def test_a_replica_that_went_elsewhere_while_it_was_made_is_not_kept(tmp_path: Path) -> None:
    async def test() -> None:
        async with node(tmp_path) as broker:
            broker.publish(in_state("leader"))
            broker.publish(in_state("elsewhere"))
            await broker.reconciliation.settled()
            assert broker.names() == []
            assert not (tmp_path / "orders-0").exists()
            broker.publish(in_state("leader"))
            await broker.reconciliation.settled()
            assert broker.names() == ["orders-0"]

    run(test)
