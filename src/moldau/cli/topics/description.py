"""What `moldau topics describe` shows: partitions with their offsets, and the configs that differ from the defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, OffsetSpec, ResourceType

from moldau.cli.librdkafka import kafka_error, topic_failure
from moldau.cli.output import TABLE, Row, cell, print_rows, print_table

COLUMNS = ("partition", "leader", "replicas", "isr", "start", "end")


def describe(admin: AdminClient, names: Sequence[str], *, timeout_s: float) -> tuple[list[Row], list[str]]:
    """The descriptions of the topics that are there, and a sentence for each that is not."""
    if not names:
        return [], []
    found, failures = [], []
    for name, answer in admin.describe_topics(TopicCollection([*names]), request_timeout=timeout_s).items():
        try:
            found.append(answer.result())
        except KafkaException as wrong:
            failures.append(topic_failure(name, kafka_error(wrong)))
    starts = offsets(admin, found, OffsetSpec.earliest(), timeout_s=timeout_s)
    ends = offsets(admin, found, OffsetSpec.latest(), timeout_s=timeout_s)
    configs = overrides(admin, [topic.name for topic in found], timeout_s=timeout_s)
    descriptions: list[Row] = [
        {
            "topic": topic.name,
            "id": url_safe(str(topic.topic_id)),
            "internal": topic.is_internal,
            "configs": configs[topic.name],
            "partitions": [
                {
                    "partition": partition.id,
                    "leader": partition.leader.id if partition.leader else None,
                    "replicas": [node.id for node in partition.replicas],
                    "isr": [node.id for node in partition.isr],
                    "start": starts.get((topic.name, partition.id)),
                    "end": ends.get((topic.name, partition.id)),
                }
                for partition in sorted(topic.partitions, key=lambda partition: partition.id)
            ],
        }
        for topic in found
    ]
    return descriptions, failures


def url_safe(uuid: str) -> str:
    """A topic id as Kafka's own tools write it; librdkafka uses the other two letters of base64."""
    return uuid.replace("+", "-").replace("/", "_")


def offsets(admin: AdminClient, topics: Sequence[Any], spec: Any, *, timeout_s: float) -> dict[tuple[str, int], int]:
    """One offset for each partition that has a leader; the others answer with an error and are left out."""
    wanted = {
        TopicPartition(topic.name, partition.id): spec
        for topic in topics
        for partition in topic.partitions
        if partition.leader
    }
    known = {}
    for at, answer in (admin.list_offsets(wanted, request_timeout=timeout_s) if wanted else {}).items():
        try:
            known[at.topic, at.partition] = answer.result().offset
        except KafkaException:
            continue
    return known


def overrides(admin: AdminClient, names: Sequence[str], *, timeout_s: float) -> dict[str, dict[str, str]]:
    """The configs that were set on each topic itself."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    answers = admin.describe_configs(resources, request_timeout=timeout_s) if resources else {}
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {
        resource.name: {key: entry.value for key, entry in sorted(answer.result().items()) if entry.source == own}
        for resource, answer in answers.items()
    }


def print_descriptions(descriptions: Sequence[Row], *, output: str) -> None:
    if output != TABLE:
        print_rows(descriptions, columns=(), output=output)
        return
    for index, topic in enumerate(descriptions):
        if index:
            print()
        print_description(topic)


def print_description(topic: Any) -> None:
    print(f"topic    {topic['topic']}")
    print(f"id       {topic['id']}")
    configs = [f"{key}={value}" for key, value in topic["configs"].items()]
    print(f"configs  {' '.join(configs) or '-'}")
    lines = [[cell(partition[column]) for column in COLUMNS] for partition in topic["partitions"]]
    print_table(lines, header=[column.upper() for column in COLUMNS])
