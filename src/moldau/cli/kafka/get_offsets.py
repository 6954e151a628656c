"""`moldau get-offsets`: the offsets of partitions at a time, as Apache Kafka's tool prints them."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Callable

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.kafka.filters import topic_pattern
from moldau.cli.topics.leaders import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    offsets_at,
)
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster, words_of
from moldau.client.leaders import Answers
from moldau.core.ids import TopicPartition
from moldau.core.topic_names import is_internal

TIMES = {
    "latest": LATEST, "earliest": EARLIEST, "max-timestamp": MAX_TIMESTAMP, "earliest-local": EARLIEST_LOCAL,
    "latest-tiered": LATEST_TIERED, "earliest-pending-upload": EARLIEST_PENDING_UPLOAD,
}  # fmt: skip
TIMESTAMP_MAX = 2**63 - 1
NO_OFFSET = -1
EVERYTHING = ".*"
_RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|([0-9]*)-([0-9]*)))?")
Fits = Callable[[TopicPartition], bool]


def run(options: Namespace) -> int:
    timestamp_ms, fits = parsed_time(options.time), chosen(options)
    with open_cluster(options) as cluster:
        places = [place for place in partitions(cluster, options) if fits(place)]
        if not places:
            raise CommandFailed("Could not match any topic-partitions with the specified filters")
        show(offsets_at(cluster, sorted(places, key=str), timestamp_ms))
    return OK


def parsed_time(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    if not text.removeprefix("-").isdecimal() or not text.isascii() or abs(int(text)) > TIMESTAMP_MAX:
        raise UsageError(
            f"Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or max-timestamp"
            " / -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or a specified long"
            " format timestamp"
        )
    return int(text)


def chosen(options: Namespace) -> Fits:
    if options.topic_partitions is None:
        return by_topic(options.topic, options.partitions)
    if options.topic is not None or options.partitions is not None:
        raise UsageError("--topic-partitions cannot be used with --topic or --partitions")
    rules = [rule(each) for each in options.topic_partitions.split(",")]
    return lambda place: any(fits(place) for fits in rules)


def by_topic(topic: str | None, partitions: str | None) -> Fits:
    pattern = topic_pattern(EVERYTHING if topic is None else topic)
    numbers = partitions.split(",") if partitions else []
    if not all(each.isdecimal() and each.isascii() for each in numbers):
        raise UsageError(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {partitions}"
        )
    wanted = {int(each) for each in numbers}
    return lambda place: bool(pattern.fullmatch(place.topic)) and (not wanted or place.partition in wanted)


def rule(text: str) -> Fits:
    found = _RULE.fullmatch(text)
    if found is None:
        raise UsageError(f"Invalid rule specification: {text}")
    pattern = topic_pattern(found[1] or EVERYTHING)
    if found[2]:
        numbers = range(int(found[2]), int(found[2]) + 1)
    else:
        numbers = range(int(found[3] or 0), int(found[4]) if found[4] else 2**31)
    return lambda place: place.partition in numbers and bool(pattern.fullmatch(place.topic))


def partitions(cluster: Cluster, options: Namespace) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name or "", each.partition_index)
        for topic in cluster.metadata().topics
        if not (options.exclude_internal_topics and (topic.is_internal or is_internal(topic.name or "")))
        for each in topic.partitions
    ]


def show(answers: Answers) -> None:
    """A partition that has no offset at that time is left out."""
    for place in sorted(answers, key=str):
        found = answers[place]
        if found.code:
            told = f"Skip getting offsets for topic-partition {place} due to error: {words_of(found.code)}"
            print(f"moldau get-offsets: {told}", file=sys.stderr)
        elif found.offset != NO_OFFSET:
            print(f"{place.topic}:{place.partition}:{found.offset}")
