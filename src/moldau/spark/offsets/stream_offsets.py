"""What Spark keeps in a query's checkpoint: offsets, and which topics they are offsets of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.spark.offsets.bounds import TOPIC_IDS, Offsets, offsets_from_json, offsets_to_json


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """Offsets of partitions, and the ids of their topics: a topic that is made anew has its name and another id.

    A topic without an id here is taken for what it is now: checkpoints of earlier versions have no ids, and brokers
    before Apache Kafka 2.8 gave none.
    """

    offsets: Offsets
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, dict[str, Any]]:
        """The stock connector's form, with the ids under a name that no topic can have."""
        shaped: dict[str, dict[str, Any]] = {**offsets_to_json(self.offsets)}
        ids = {topic: self.topic_ids[topic] for topic in shaped if topic in self.topic_ids}
        return {**shaped, TOPIC_IDS: ids} if ids else shaped

    def of_same_topics(self, topic_ids: Mapping[str, str]) -> Offsets:
        """Without those of topics that have another id there."""
        other = remade(self.topic_ids, topic_ids)
        return {place: offset for place, offset in self.offsets.items() if place.topic not in other}


def stream_offsets(shaped: Mapping[str, Mapping[str, Any]]) -> StreamOffsets:
    """Read back from a checkpoint, of this version or an earlier one."""
    offsets = offsets_from_json({topic: each for topic, each in shaped.items() if topic != TOPIC_IDS})
    return StreamOffsets(offsets, dict(shaped.get(TOPIC_IDS, {})))


def remade(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Topics whose ids are known of both times and differ."""
    return {topic for topic, topic_id in before.items() if after.get(topic, topic_id) != topic_id}
