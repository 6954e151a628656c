"""What is wrong with a topic, with the next step where there is one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from moldau.cli.failures import CommandFailed, meant
from moldau.cli.topics.changes import Outcome
from moldau.client.cluster import Cluster, words_of
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages.metadata import MetadataResponseTopic


def existing_topic(cluster: Cluster, name: str) -> MetadataResponseTopic:
    found = cluster.metadata([name]).topics[0]
    if found.error_code != ErrorCode.NONE:
        known: Iterable[str] = ()
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            known = [each.name or "" for each in cluster.metadata().topics]
        raise CommandFailed(problem(name, found.error_code, words_of(found.error_code), known))
    return found


def problem(topic: str, code: int, told: str, known: Iterable[str] = ()) -> str:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        advice = meant(topic, known) or f"; create it with: moldau topics create {topic}"
        return f"topic {topic!r} does not exist{advice}"
    if code == ErrorCode.TOPIC_ALREADY_EXISTS:
        return f"topic {topic!r} already exists; --if-not-exists accepts that"
    return f"topic {topic!r}: {told}"


def problem_of(topic: str, outcome: Outcome) -> str:
    return problem(topic, outcome.code, outcome.told)


def chosen_places(topic: MetadataResponseTopic, wanted: Iterable[int] | None) -> list[TopicPartition]:
    """These partitions of the topic, or all."""
    there = sorted(each.partition_index for each in topic.partitions)
    name = topic.name or ""
    for partition in wanted or ():
        check_partition(name, partition, there)
    return [TopicPartition(name, each) for each in sorted({*(wanted or there)})]


def check_partition(topic: str, partition: int, existing: Collection[int]) -> None:
    if partition not in existing:
        raise CommandFailed(f"topic {topic!r} has no partition {partition}; it has {len(existing)}, counted from 0")
