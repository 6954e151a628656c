"""What `moldau topics describe` shows: partitions with their offsets, and the configs that differ from the defaults."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moldau.cli.failures import FAILED, OK
from moldau.cli.output import Row, cell, is_for_people, print_rows, print_table
from moldau.cli.topics.configs import Kind, Source, described
from moldau.cli.topics.failures import problem
from moldau.cli.topics.leaders import EARLIEST, LATEST, offsets_at
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster, check, words_of
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, TopicPartition, format_uuid
from moldau.wire.messages.metadata import MetadataResponseTopic

COLUMNS = ("partition", "leader", "replicas", "isr", "start", "end")

Offsets = Mapping[TopicPartition, int]


def describe_topics(options: Namespace) -> int:
    with open_cluster(options) as cluster:
        descriptions, failures = describe(cluster, options.topics)
    wrong: list[Row] = [{"topic": topic, "error": told} for topic, told in failures.items()]
    print_descriptions(descriptions if is_for_people(options.output) else descriptions + wrong, output=options.output)
    for told in failures.values():
        print(f"moldau topics: {told}", file=sys.stderr)
    return FAILED if failures else OK


def describe(cluster: Cluster, names: Sequence[str]) -> tuple[list[Row], dict[str, str]]:
    """The descriptions of the topics that are there, and a sentence for each that is not."""
    wanted = list(dict.fromkeys(names))
    known = {each.name or "": each for each in cluster.metadata(wanted or None).topics}
    topics = [known[name] for name in wanted or sorted(known)]
    failures = {
        each.name or "": problem(each.name or "", each.error_code, words_of(each.error_code))
        for each in topics
        if each.error_code != ErrorCode.NONE
    }
    found = [each for each in topics if each.error_code == ErrorCode.NONE]
    starts, ends = (offsets(cluster, found, at) for at in (EARLIEST, LATEST))
    configs = overrides(cluster, [each.name or "" for each in found])
    return [description(each, starts, ends, configs[each.name or ""]) for each in found], failures


def description(topic: MetadataResponseTopic, starts: Offsets, ends: Offsets, configs: dict[str, str | None]) -> Row:
    name = topic.name or ""
    return {
        "topic": name,
        "id": format_uuid(topic.topic_id),
        "internal": topic.is_internal,
        "configs": configs,
        "partitions": [
            {
                "partition": each.partition_index,
                "leader": None if each.leader_id == NO_LEADER else each.leader_id,
                "replicas": each.replica_nodes,
                "isr": each.isr_nodes,
                "start": starts.get(TopicPartition(name, each.partition_index)),
                "end": ends.get(TopicPartition(name, each.partition_index)),
            }
            for each in sorted(topic.partitions, key=lambda each: each.partition_index)
        ],
    }


def offsets(cluster: Cluster, topics: Iterable[MetadataResponseTopic], at: int) -> Offsets:
    """One offset for each partition that has a leader; the others are left out."""
    wanted = [
        TopicPartition(topic.name or "", each.partition_index)
        for topic in topics
        for each in topic.partitions
        if each.leader_id != NO_LEADER
    ]
    return {place: found.offset for place, found in offsets_at(cluster, wanted, at).items() if not found.code}


def overrides(cluster: Cluster, names: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """The configs that were set on each topic itself."""
    found = {}
    for name, answer in described(cluster, Kind.TOPIC, names).items():
        check(answer.error_code, answer.error_message)
        own = [each for each in answer.configs if each.config_source == Source.DYNAMIC_TOPIC_CONFIG]
        found[name] = {each.name: each.value for each in sorted(own, key=lambda each: each.name)}
    return found


def print_descriptions(descriptions: Sequence[Row], *, output: str) -> None:
    if not is_for_people(output):
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
