"""Random histories of topics on a disk that fails now and then: in the end tables, folders and image agree."""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from moldau.broker.topics import reconciliation
from moldau.controller.image import ClusterImage, TopicImage
from moldau.core.ids import TopicId
from tests.broker.topics.test_reconciliation import HERE, Node, append, node, run

NAMES = ("a", "b", "c")
STEPS = 40


class Disk:
    """Refuses a share of the calls that make or rename folders."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._mkdir, self._rename = os.mkdir, os.rename
        self.fails = 0.0

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        self._perhaps_fail(path)
        self._mkdir(path, mode)

    def rename(self, source: str, target: str) -> None:
        self._perhaps_fail(source)
        self._rename(source, target)

    def _perhaps_fail(self, path: str) -> None:
        if self._chance.random() < self.fails:
            raise OSError(errno.ENOSPC, "No space left on device", path)


class World:
    """Publishes images as the controller would, one topic changed at a time, and creates as the handlers do."""

    def __init__(self, broker: Node, chance: random.Random) -> None:
        self.broker = broker
        self.topics: dict[str, TopicImage] = {}
        self.told: list[asyncio.Future[str | None]] = []
        self.written: Counter[tuple[bytes, int]] = Counter()
        self._chance = chance
        self._ids = count(1)

    def publish(self, name: str) -> None:
        ids: dict[bytes, str] = {topic.id: each for each, topic in self.topics.items()}
        self.broker.publish(ClusterImage(topics=dict(self.topics), topic_ids=ids, changed_topics=frozenset({name})))

    def step(self) -> None:
        name = self._chance.choice(NAMES)
        topic = self.topics.get(name)
        if topic is None:
            self._grow(TopicImage(name, TopicId(next(self._ids).to_bytes(16, "big")), ()))
        elif self._chance.random() < 0.4:
            del self.topics[name]
            self.publish(name)
            if self._chance.random() < 0.5:
                self.step()  # perhaps the same name, at once
        else:
            self._grow(topic)

    def _grow(self, topic: TopicImage) -> None:
        before = len(topic.partitions)
        grown = self.topics[topic.name] = TopicImage(
            topic.name, topic.id, (HERE,) * (before + self._chance.randint(1, 70))
        )
        self.publish(topic.name)

        async def undo() -> None:
            now = self.topics.get(topic.name)
            if now is None or now.id != topic.id or len(now.partitions) <= before:
                return
            if before:
                self.topics[topic.name] = TopicImage(topic.name, topic.id, now.partitions[:before])
            else:
                del self.topics[topic.name]
            self.publish(topic.name)

        new = range(before, len(grown.partitions))
        self.told.append(self.broker.reconciliation.expect(topic.id, new, undo))

    def write(self) -> None:
        """To any partition that serves: only one of a topic that exists may take it."""
        serving = [each for each in self.broker.partitions.all() if each.is_leader]
        for partition in self._chance.sample(serving, min(3, len(serving))):
            assert self.topics[partition.topic].id == partition.topic_id
            append(partition)
            self.written[partition.topic_id, partition.index] += 1

    def check(self, folder: Path) -> None:
        """Nothing that was written to a topic that still exists is lost, and nothing of an older one is there."""
        wanted = {(topic.id, index) for topic in self.topics.values() for index in range(len(topic.partitions))}
        served = {(each.topic_id, each.index): each.log.end_offset for each in self.broker.partitions.all()}
        assert served.keys() == wanted
        assert served == {where: self.written[where] for where in wanted}
        names = {f"{topic.name}-{index}" for topic in self.topics.values() for index in range(len(topic.partitions))}
        assert {path.name for path in folder.iterdir() if "-" in path.name and "." not in path.name} == names


@pytest.mark.parametrize("seed", range(6))
def test_tables_folders_and_image_agree_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    disk = Disk(chance)
    monkeypatch.setattr(os, "mkdir", disk.mkdir)
    monkeypatch.setattr(os, "rename", disk.rename)
    monkeypatch.setattr(reconciliation, "UNDO_RETRY_S", 0.001)

    async def test() -> None:
        async with node(tmp_path) as broker:
            world = World(broker, chance)
            for _ in range(STEPS):
                disk.fails = chance.choice((0.0, 0.0, 0.02))
                world.step()
                for _ in range(chance.randint(0, 20)):
                    await asyncio.sleep(0.0002)
                world.write()
                if chance.random() < 0.2:
                    broker.reconciliation.complete()
            disk.fails = 0.0
            await asyncio.gather(*world.told)
            await broker.reconciliation.settled()
            await broker.complete()
            await broker.complete()
            world.check(tmp_path)

    run(test)
