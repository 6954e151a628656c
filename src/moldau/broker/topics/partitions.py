"""The partitions that live on this broker, found by topic name or by topic id."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.core.config.topic import TopicConfig
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.replication.partition import LeaderAndEpoch, Partition

LOGGER = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class HostedTopic:
    """One topic as far as it is on this broker: what serves, and what is made but waits for the rest of its creation.

    `image` is what the partitions here were last made equal to; the indexes in `outdated` still lag behind it.
    """

    image: TopicImage
    config: TopicConfig
    serving: dict[int, Partition] = field(default_factory=dict)
    made: dict[int, Partition] = field(default_factory=dict)
    outdated: list[int] = field(default_factory=list)
    cursor: int = 0  # the index from which on partitions may be missing
    failure: Exception | None = None  # of the last try to make what is missing
    is_incomplete: bool = False  # which was reported

    @property
    def name(self) -> str:
        return self.image.name

    def follow(self, topic: TopicImage, config: TopicConfig) -> list[Partition]:
        """Take over a new image; gives the partitions that it no longer has, which have stopped serving."""
        before, self.image = self.image.partitions, topic
        if config != self.config:
            self.config = config
            self.outdated = [*self.serving, *self.made]
        else:
            pairs = enumerate(zip(before, topic.partitions, strict=False))
            changed = [slot for slot, (old, new) in pairs if old is not new]
            self.outdated += [slot for slot in changed if slot in self.serving or slot in self.made]
        self.cursor = 0 if self.failure is not None else min(self.cursor, len(before))
        gone = [self.serving.pop(slot) for slot in range(len(topic.partitions), len(before)) if slot in self.serving]
        gone += [self.made.pop(slot) for slot in range(len(topic.partitions), len(before)) if slot in self.made]
        for partition in gone:
            partition.retire()
        return gone

    def bring_up_to_date(self, index: int) -> None:
        partition = self.serving.get(index) or self.made.get(index)
        if partition is None:
            return
        partition.lead(leadership(self.image.partitions[index]))
        if partition.log.config is not self.config:
            partition.log.update_config(self.config)

    def missing(self, broker_id: int, *, count_max: int) -> list[int]:
        """The next partitions that belong here and are not made; the cursor moves past them."""
        found: list[int] = []
        total = len(self.image.partitions)
        while self.cursor < total and len(found) < count_max:
            index = self.cursor
            self.cursor += 1
            if (
                index not in self.serving
                and index not in self.made
                and broker_id in self.image.partitions[index].replicas
            ):
                found.append(index)
        return found

    def lacks(self, failure: Exception) -> None:
        """A partition can't be made; said once for each time that the topic is incomplete."""
        self.failure = failure
        if not self.is_incomplete:
            self.is_incomplete = True
            LOGGER.error("topic %s lacks partitions, which are tried again: %s", self.name, failure)

    def try_again(self) -> None:
        self.failure = None
        self.cursor = 0

    @property
    def is_passed(self) -> bool:
        """Whether every partition was looked at since the image changed."""
        return self.cursor >= len(self.image.partitions)


class Partitions:
    """The tables that requests are served from. A topic that this broker has no replica of is not here."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self._topics: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}

    def get(self, topic: str, index: int) -> Partition | None:
        found = self._topics.get(topic)
        return None if found is None else found.get(index)

    def get_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        found = self._by_id.get(topic_id)
        return None if found is None else found.get(index)

    def why_missing(self, topic: str | bytes, index: int) -> ErrorCode:
        """Why a partition is not served here: others lead it, it is still being made, or it does not exist."""
        image = self.image
        known = image.topics.get(topic) if isinstance(topic, str) else image.topic_by_id(topic)
        if known is not None:
            there = 0 <= index < len(known.partitions)
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if isinstance(topic, str) else ErrorCode.UNKNOWN_TOPIC_ID

    def all(self) -> Iterator[Partition]:
        for topic in self._topics.values():
            yield from topic.values()

    def host(self, topic: HostedTopic) -> None:
        """Serve what the topic serves, from now on and as it changes."""
        self._topics[topic.name] = self._by_id[topic.image.id] = topic.serving

    def go_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Their log directory failed."""
        for each in partitions:
            partition = self.get(each.topic, each.partition)
            if partition is not None:
                partition.go_offline()

    def evict(self, topic: HostedTopic) -> list[Partition]:
        """Stop serving a topic, whatever becomes of its folders; gives all its partitions."""
        del self._topics[topic.name]
        del self._by_id[topic.image.id]
        gone = [*topic.serving.values(), *topic.made.values()]
        for partition in gone:
            partition.retire()
        return gone


def leadership(state: PartitionImage) -> LeaderAndEpoch:
    return LeaderAndEpoch(state.leader, state.leader_epoch)


def changed_names(old: ClusterImage | None, new: ClusterImage, hosted: Iterable[str]) -> Iterable[str]:
    """The topics whose folders or configuration may have to change between two images."""
    if old is None or old.broker_configs != new.broker_configs:
        return {*hosted, *new.topics}
    return new.changed_topics
