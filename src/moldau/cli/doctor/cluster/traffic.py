"""How much is in partitions, and how fast it comes: from sizes of log directories and offsets a day apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from moldau.cli.doctor.cluster.facts import ClusterFacts, Partition, Topic
from moldau.cli.topics.leaders import EARLIEST, LATEST, MAX_TIMESTAMP, offsets_at
from moldau.client.cluster import Cluster, Refused
from moldau.client.leaders import Answer, Answers
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

DAY_MS = 86_400_000
AGE_MS_MIN = 600_000  # a burst of some minutes says nothing of a day
NONE = -1


def gather_traffic(cluster: Cluster, facts: ClusterFacts) -> dict[str, Topic]:
    reached = {each.id for each in facts.brokers.values() if each.failure is None}
    places = [each.place for each in facts.partitions() if each.leader in reached]
    if not places:
        return dict(facts.topics)
    starts, ends = offsets_at(cluster, places, EARLIEST), offsets_at(cluster, places, LATEST)
    day_ago = offsets_at(cluster, places, facts.now_ms - DAY_MS)
    try:
        newest = offsets_at(cluster, places, MAX_TIMESTAMP)
    except Refused:  # brokers of old
        newest = {}
    sizes = {(each.broker, place): size for each in facts.directories for place, size in each.replicas.items()}

    def known(partition: Partition) -> Partition:
        place = partition.place
        start, end = _offset(starts, place), _offset(ends, place)
        size = sizes.get((partition.leader, place))
        latest = newest.get(place)
        return replace(
            partition,
            start=start,
            end=end,
            size_bytes=size,
            bytes_per_s=_rate(day_ago.get(place), start=start, end=end, size=size, now_ms=facts.now_ms),
            newest_ms=latest.timestamp_ms if latest and latest.code == ErrorCode.NONE and latest.offset >= 0 else None,
        )

    return {name: replace(each, partitions=tuple(map(known, each.partitions))) for name, each in facts.topics.items()}


def _offset(answers: Answers, place: TopicPartition) -> int | None:
    answer = answers.get(place)
    return answer.offset if answer is not None and answer.code == ErrorCode.NONE else None


def _rate(answer: Answer | None, *, start: int | None, end: int | None, size: int | None, now_ms: int) -> float | None:
    """Bytes a second, since the first record that is at most a day old. Nothing came for a day: 0."""
    if answer is None or answer.code != ErrorCode.NONE:
        return None
    if start is None or end is None or size is None or end <= start:
        return None
    if answer.offset == NONE:
        return 0.0
    age_ms = now_ms - answer.timestamp_ms
    if age_ms < AGE_MS_MIN:
        return None
    return (end - answer.offset) * (size / (end - start)) * 1_000 / age_ms


def by_broker(facts: ClusterFacts) -> Mapping[int, list[tuple[Topic, Partition]]]:
    """The partitions of which each broker has a replica."""
    found: dict[int, list[tuple[Topic, Partition]]] = {each: [] for each in facts.brokers}
    for topic in facts.topics.values():
        for partition in topic.partitions:
            for replica in partition.replicas:
                found.setdefault(replica, []).append((topic, partition))
    return found
