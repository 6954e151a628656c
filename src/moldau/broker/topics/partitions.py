"""The partitions that live on this broker, found by topic name or by topic id."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.core.config.topic import TopicConfig
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.replication.assignment import Assignment
from moldau.replication.partition import LeaderAndEpoch, Partition

LOGGER = logging.getLogger(__name__)

LeadershipListener = Callable[[Partition, bool], None]


@dataclass(slots=True, eq=False)
class HostedTopic:
    """One topic as far as it is on this broker: what serves, and what is made but waits for the rest of its creation.

    `image` is what the partitions here were last made equal to; the indexes in `outdated` still lag behind it, and so
    do those in `failed`, which could not be brought up to date and are tried again.
    """

    image: TopicImage
    config: TopicConfig
    serving: dict[int, Partition] = field(default_factory=dict)
    made: dict[int, Partition] = field(default_factory=dict)
    outdated: list[int] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)
    cursor: int = 0  # the index from which on partitions may be missing
    failure: Exception | None = None  # of the last try to make what is missing
    is_incomplete: bool = False  # which was reported

    @property
    def name(self) -> str:
        return self.image.name

    def follow(self, topic: TopicImage, config: TopicConfig, broker_id: int) -> list[Partition]:
        """Take over a new image; gives the partitions that this broker has no longer, which have stopped serving."""
        before, self.image = self.image.partitions, topic
        pairs = enumerate(zip(before, topic.partitions, strict=False))
        changed = [slot for slot, (old, new) in pairs if old is not new]
        left = [slot for slot in changed if broker_id not in topic.partitions[slot].replicas]
        left += range(len(topic.partitions), len(before))
        gone = [partition for slot in left for partition in self._let_go(slot)]
        if config != self.config:
            self.config = config
            self.outdated = [*self.serving, *self.made]
        else:
            self.outdated += [slot for slot in changed if slot in self.serving or slot in self.made]
        joined = (slot for slot in changed if broker_id in topic.partitions[slot].replicas and not self._has(slot))
        self.cursor = 0 if self.failure is not None else min(self.cursor, len(before), next(joined, len(before)))
        for partition in gone:
            partition.retire()
        return gone

    def _has(self, index: int) -> bool:
        return index in self.serving or index in self.made

    def _let_go(self, index: int) -> list[Partition]:
        found = (self.serving.pop(index, None), self.made.pop(index, None))
        return [partition for partition in found if partition is not None]

    def bring_up_to_date(self, index: int, elapsed_ms: int) -> Partition | None:
        """The partition, if it is here and has another leader or epoch than before, or followers for the first time."""
        partition = self.serving.get(index) or self.made.get(index)
        if partition is None:
            return None
        state, before = self.image.partitions[index], (partition.leadership, partition.replicas is None)
        partition.lead(leadership(state), assignment(state), now_ms=elapsed_ms)
        if partition.log.config is not self.config:
            partition.log.update_config(self.config)
        return None if (partition.leadership, partition.replicas is None) == before else partition

    def missing(self, broker_id: int, *, count_max: int) -> list[int]:
        """The next partitions that belong here and are not made; the cursor moves past them."""
        found: list[int] = []
        total = len(self.image.partitions)
        while self.cursor < total and len(found) < count_max:
            index = self.cursor
            self.cursor += 1
            if not self._has(index) and broker_id in self.image.partitions[index].replicas:
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
        self.leadership_listeners: list[LeadershipListener] = []
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

    def high_watermark_of(self, partition: TopicPartition) -> int | None:
        """For the checkpoint; None when it is not served."""
        found = self.get(partition.topic, partition.partition)
        return None if found is None else found.high_watermark

    def host(self, topic: HostedTopic) -> None:
        """Serve what the topic serves, from now on and as it changes."""
        self._topics[topic.name] = self._by_id[topic.image.id] = topic.serving

    def on_leadership(self, partition: Partition, is_leader: bool) -> None:
        """A partition serves from now on, or has another leader or leader epoch than before, or serves no more."""
        for listener in self.leadership_listeners:
            listener(partition, is_leader)

    def go_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Their log directory failed."""
        for each in partitions:
            partition = self.get(each.topic, each.partition)
            if partition is not None:
                partition.go_offline()
                self.on_leadership(partition, False)

    def evict(self, topic: HostedTopic) -> list[Partition]:
        """Stop serving a topic, whatever becomes of its folders; gives all its partitions."""
        del self._topics[topic.name]
        del self._by_id[topic.image.id]
        gone = [*topic.serving.values(), *topic.made.values()]
        for partition in gone:
            partition.retire()
        self.tell_gone(gone)
        return gone

    def tell_gone(self, partitions: Iterable[Partition]) -> None:
        if self.leadership_listeners:
            for partition in partitions:
                self.on_leadership(partition, False)


def leadership(state: PartitionImage) -> LeaderAndEpoch:
    return LeaderAndEpoch(state.leader, state.leader_epoch)


def assignment(state: PartitionImage) -> Assignment | None:
    """None for a partition that one broker has alone."""
    if len(state.replicas) == 1:
        return None
    return Assignment(state.replicas, frozenset(state.isr), state.partition_epoch, frozenset(state.offline))


def changed_names(old: ClusterImage | None, new: ClusterImage, hosted: Iterable[str]) -> Iterable[str]:
    """The topics whose folders or configuration may have to change between two images."""
    if old is None or old.broker_configs != new.broker_configs:
        return {*hosted, *new.topics}
    return new.changed_topics
