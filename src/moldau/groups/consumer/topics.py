"""The topics that the cluster has, as far as groups look at them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from moldau.controller.image import ClusterImage, TopicImage
from moldau.groups.consumer.assignors import TopicShape
from moldau.groups.consumer.metadata_hash import combined_hash, topic_hash


@dataclass(frozen=True, slots=True)
class Topics:
    """Immutable: when topics change there is another one, with a higher version."""

    image: ClusterImage = field(default_factory=ClusterImage)
    version: int = 0
    grown_version: int = 0
    """The version in which the last new topic came."""

    def followed_by(self, image: ClusterImage, *, now_ms: int) -> Topics:
        """Versions are times, so that those which the log kept from before a restart are old."""
        version = max(self.version + 1, now_ms)
        known = self.image.topic_ids
        has_grown = any(
            topic_id not in known
            for topic_id in (image.topics[name].id for name in image.changed_topics if name in image.topics)
        )
        return Topics(image, version, version if has_grown or not self.version else self.grown_version)

    def named(self, name: str) -> TopicImage | None:
        return self.image.topics.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        return self.image.topic_ids.get(topic_id)

    @property
    def names(self) -> Collection[str]:
        return self.image.topics

    def ids_of(self, names: Iterable[str]) -> frozenset[bytes]:
        topics = self.image.topics
        return frozenset(topics[name].id for name in names if name in topics)

    def shapes(self, names: Iterable[str]) -> dict[bytes, TopicShape]:
        found = (self.image.topics.get(name) for name in names)
        return {topic.id: TopicShape(topic.id, len(topic.partitions)) for topic in found if topic is not None}

    def hash_of(self, names: Iterable[str]) -> int:
        """Differs when one of the topics was created, deleted or changed its partitions or their racks."""
        topics = self.image.topics
        return combined_hash([topic_hash(topics[name], self.image.brokers) for name in sorted(names) if name in topics])
