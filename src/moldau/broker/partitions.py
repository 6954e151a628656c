"""The partitions that live on this broker, kept equal to what the cluster's image assigns to it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.core.config.topic import TopicConfig
from moldau.core.ids import TopicPartition
from moldau.log.directories import LogDirectories
from moldau.log.meta_properties import NoPlace, UnusableDirectory
from moldau.log.partition_log import PartitionLog
from moldau.replication.partition import Leadership, Partition

log = logging.getLogger(__name__)


class Partitions:
    """Found by topic name or by topic id; a topic that this broker has no replica of is not here."""

    def __init__(self, broker_id: int, directories: LogDirectories) -> None:
        self._broker_id = broker_id
        self._directories = directories
        self._topics: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}
        self._incomplete: set[str] = set()
        self._image = ClusterImage()
        self._defaults = TopicConfig.defaults()

    def get(self, topic: str, index: int) -> Partition | None:
        found = self._topics.get(topic)
        return None if found is None else found.get(index)

    def get_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        found = self._by_id.get(topic_id)
        return None if found is None else found.get(index)

    def has_topic_id(self, topic_id: bytes) -> bool:
        return topic_id in self._by_id

    def all(self) -> Iterator[Partition]:
        for topic in self._topics.values():
            yield from topic.values()

    def of_topic(self, topic: str) -> Mapping[int, Partition]:
        return self._topics.get(topic, {})

    def apply(self, old: ClusterImage | None, new: ClusterImage, *, defaults: TopicConfig, now_ms: int) -> None:
        """Make the folders what the image says: new partitions, gone topics, changed leaders and configs."""
        self._image, self._defaults = new, defaults
        before = old.topics if old is not None else {}
        if old is None or old.broker_configs != new.broker_configs:
            changed: Iterable[str] = before.keys() | new.topics.keys()
        else:
            changed = new.changed_topics
        for name in changed:
            known, topic = before.get(name), new.topics.get(name)
            if known is not None and (topic is None or topic.id != known.id):
                self._remove(known)
            if topic is not None:
                self._update(topic, defaults.override(topic.configs), now_ms, starting=old is None)

    def go_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Their log directory failed."""
        for each in partitions:
            partition = self.get(each.topic, each.partition)
            if partition is not None:
                partition.go_offline()

    def complete(self, now_ms: int) -> None:
        """Try again what could not be made, on a full disk for one, until a folder refuses again."""
        for name in sorted(self._incomplete):
            topic = self._image.topics.get(name)
            if topic is not None:
                self._update(topic, self._defaults.override(topic.configs), now_ms)
                if name in self._incomplete:
                    return
                log.info("topic %s has all its partitions now", name)
            self._incomplete.discard(name)

    def _update(self, topic: TopicImage, config: TopicConfig, now_ms: int, *, starting: bool = False) -> None:
        here = self._topics.setdefault(topic.name, {})
        self._by_id[topic.id] = here
        refused: Exception | None = None
        for index, state in enumerate(topic.partitions):
            if self._broker_id not in state.replicas:
                continue
            known = here.get(index)
            if known is not None:
                known.lead(_leadership(state))
                if known.log.config is not config:
                    known.log.update_config(config)
                continue
            try:
                here[index] = self._open(topic, index, state=state, config=config, now_ms=now_ms)
            except (UnusableDirectory, OSError) as wrong:
                # At a start, records that can't be read are a reason to stop; a missing place for new ones is not.
                if starting and not isinstance(wrong, NoPlace):
                    raise
                refused = wrong
        self._note(topic, refused)

    def _note(self, topic: TopicImage, refused: Exception | None) -> None:
        if refused is None:
            self._incomplete.discard(topic.name)
        elif topic.name not in self._incomplete:
            self._incomplete.add(topic.name)
            log.error("topic %s lacks partitions, which are tried again: %s", topic.name, refused)

    def _open(
        self, topic: TopicImage, index: int, *, state: PartitionImage, config: TopicConfig, now_ms: int
    ) -> Partition:
        stored: PartitionLog = self._directories.log_for(
            TopicPartition(topic.name, index), topic_id=topic.id, config=config, now_ms=now_ms
        )
        return Partition(
            topic.name,
            index,
            topic_id=topic.id,
            log=stored,
            broker_id=self._broker_id,
            leadership=_leadership(state),
        )

    def _remove(self, topic: TopicImage) -> None:
        self._by_id.pop(topic.id, None)
        self._incomplete.discard(topic.name)
        partitions = self._topics.pop(topic.name, {})
        for partition in partitions.values():
            self._directories.delete(partition.log)
            partition.lead(Leadership(-1, partition.leader_epoch))


def _leadership(state: PartitionImage) -> Leadership:
    return Leadership(state.leader, state.leader_epoch)
