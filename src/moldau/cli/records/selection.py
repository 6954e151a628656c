"""Which topics and partitions a consumer reads, by names or by a pattern, as the cluster has them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from moldau.cli.failures import CommandFailed, UsageError
from moldau.client.cluster import Cluster, words_of
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages import MetadataRequest, MetadataResponse
from moldau.wire.messages.metadata import MetadataRequestTopic, MetadataResponseTopic

PASSING = (ErrorCode.LEADER_NOT_AVAILABLE,)
MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


@dataclass(frozen=True, slots=True)
class Found:
    """Topics at one moment: the id of each, and its partitions that are wanted."""

    topics: Mapping[str, bytes] = field(default_factory=dict)
    places: frozenset[TopicPartition] = frozenset()
    partitions: Mapping[str, Collection[int]] = field(default_factory=dict)
    """All of them, the wanted ones and the others."""


@dataclass(frozen=True, slots=True)
class Selection:
    names: Sequence[str] = ()
    pattern: re.Pattern[str] | None = None
    partitions: Sequence[int] = ()
    """All, if none are named."""
    may_create: bool = False
    """As Java's consumers do: whoever asks for a topic makes the broker create it, if the broker is set so."""

    def look(self, cluster: Cluster) -> Found:
        """What is there of it. CommandFailed if something may not be read."""
        answer = self._asked(cluster)
        found = [each for each in answer.topics if each.error_code not in MISSING and self._is_meant(each)]
        for each in found:
            if each.error_code not in (ErrorCode.NONE, *PASSING):
                raise CommandFailed(f"topic {each.name!r}: {words_of(each.error_code)}")
        return Found(
            {each.name or "": bytes(each.topic_id) for each in found},
            frozenset(
                TopicPartition(each.name or "", partition.partition_index)
                for each in found
                for partition in each.partitions
                if not self.partitions or partition.partition_index in self.partitions
            ),
            {each.name or "": [partition.partition_index for partition in each.partitions] for each in found},
        )

    def check(self, found: Found) -> None:
        """Names and partitions that are not there are mistakes; a pattern that matches nothing is none."""
        for name in self.names:
            if name not in found.topics:
                raise CommandFailed(missing_topic(name))
        for topic in found.topics:
            for partition in self.partitions:
                check_partition(topic, partition, found.partitions[topic])

    def _asked(self, cluster: Cluster) -> MetadataResponse:
        if not self.may_create or self.pattern:
            return cluster.metadata(None if self.pattern else self.names)
        return cluster.ask(
            MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in self.names]), MetadataResponse
        )

    def _is_meant(self, topic: MetadataResponseTopic) -> bool:
        if self.pattern is None:
            return topic.name in self.names
        return not topic.is_internal and self.pattern.fullmatch(topic.name or "") is not None


def pattern_of(text: str, *, option: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as wrong:
        raise UsageError(f"{option}: {text!r} is no regular expression: {wrong}") from None


def missing_topic(topic: str) -> str:
    return f"topic {topic!r} does not exist; create it with: moldau topics create {topic}"


def check_partition(topic: str, partition: int, existing: Collection[int]) -> None:
    if partition not in existing:
        raise CommandFailed(f"topic {topic!r} has no partition {partition}; it has {len(existing)}, counted from 0")
