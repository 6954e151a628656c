"""The folders follow the cluster's image, also when the disk doesn't at first."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.broker.partitions import Partitions
from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.core.config.topic import TopicConfig
from moldau.core.ids import TopicId
from moldau.log.directories import LogDirectories
from moldau.log.meta_properties import UnusableDirectory

BROKER_ID = 1
NOW_MS = 1_700_000_000_000
HERE = PartitionImage(replicas=(BROKER_ID,), isr=(BROKER_ID,), leader=BROKER_ID)
NOTHING = ClusterImage()


def image(**partition_counts: int) -> ClusterImage:
    topics = {
        name: TopicImage(name, TopicId(name.encode().rjust(16)), (HERE,) * count)
        for name, count in partition_counts.items()
    }
    return ClusterImage(
        topics=topics, topic_ids={topic.id: name for name, topic in topics.items()}, changed_topics=frozenset(topics)
    )


@pytest.fixture
def directories(tmp_path: Path) -> Iterator[LogDirectories]:
    opened = LogDirectories.open([tmp_path], node_id=BROKER_ID)
    yield opened
    opened.close()


def follow(partitions: Partitions, new: ClusterImage, *, old: ClusterImage | None = NOTHING) -> None:
    partitions.apply(old, new, defaults=TopicConfig.defaults(), now_ms=NOW_MS)


def fill_disk(disk: pytest.MonkeyPatch, *, but_for: str = "") -> None:
    make = os.mkdir

    def full(path: str, mode: int = 0o777) -> None:
        if not but_for or but_for not in path:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        make(path, mode)

    disk.setattr(os, "mkdir", full)


def test_a_topic_without_a_place_is_made_later_and_stops_no_other(
    directories: LogDirectories, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    partitions = Partitions(BROKER_ID, directories)
    with monkeypatch.context() as disk:
        fill_disk(disk, but_for="lucky")
        follow(partitions, image(orders=100, lucky=1))
        partitions.complete(NOW_MS)
    assert partitions.get("lucky", 0) is not None
    assert partitions.get("orders", 0) is None
    assert len([line for line in caplog.messages if line.startswith("topic orders lacks partitions")]) == 1
    assert not [line for line in caplog.records if line.exc_info]
    partitions.complete(NOW_MS)
    assert len(partitions.of_topic("orders")) == 100
    assert directories.failures == {}


def test_a_topic_that_was_deleted_meanwhile_is_not_made(
    directories: LogDirectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = Partitions(BROKER_ID, directories)
    with monkeypatch.context() as disk:
        fill_disk(disk)
        follow(partitions, image(orders=1))
    gone = ClusterImage(changed_topics=frozenset({"orders"}))
    follow(partitions, gone, old=image(orders=1))
    partitions.complete(NOW_MS)
    assert list(partitions.all()) == []


def test_a_start_without_room_serves_what_is_there(
    directories: LogDirectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(Partitions(BROKER_ID, directories), image(orders=1))
    partitions = Partitions(BROKER_ID, directories)
    with monkeypatch.context() as disk:
        fill_disk(disk)
        follow(partitions, image(orders=1, more=1), old=None)
    assert [each.topic for each in partitions.all()] == ["orders"]


def test_a_start_with_records_that_cannot_be_read_is_refused(tmp_path: Path, directories: LogDirectories) -> None:
    follow(Partitions(BROKER_ID, directories), image(orders=1))
    directories.close()
    (tmp_path / "orders-0" / "partition.metadata").write_text("garbage")
    again = LogDirectories.open([tmp_path], node_id=BROKER_ID)
    with pytest.raises(UnusableDirectory, match="orders-0"):
        follow(Partitions(BROKER_ID, again), image(orders=1), old=None)
    again.close()
