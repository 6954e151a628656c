"""`moldau topics list`: how large topics are, how fast they grow, and who is behind."""

from __future__ import annotations

import re
import time
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence

from moldau.cli.failures import OK, UsageError
from moldau.cli.output import WIDE, Row, is_for_people, print_rows
from moldau.cli.topics.leaders import EARLIEST, LATEST, offsets_at
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster
from moldau.client.connection import Unsupported
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, TopicPartition
from moldau.wire.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from moldau.wire.messages.metadata import MetadataResponseTopic

LOOKS_APART_S = 1.0
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
UNIT_BYTES = 1024

Ends = Mapping[TopicPartition, int]


def list_topics(options: Namespace) -> int:
    wants_lag = options.lag or options.output == WIDE
    with open_cluster(options) as cluster:
        topics = chosen(cluster.metadata().topics, options)
        rows = {each.name or "": basic(each) for each in topics}
        add_sizes(cluster, rows)
        ends: Ends = {}
        if topics and (options.rate or wants_lag):
            ends = end_offsets(cluster, topics)
        if options.output == WIDE:
            add_records(cluster, topics, ends, rows)
        if options.rate and topics:
            add_rates(cluster, topics, ends, rows)
        if wants_lag:
            from moldau.cli.topics.lags import add_lags

            add_lags(cluster, topics, ends, rows)
    show(list(rows.values()), options, wants_lag=wants_lag)
    return OK


def chosen(topics: Iterable[MetadataResponseTopic], options: Namespace) -> list[MetadataResponseTopic]:
    try:
        patterns = [re.compile(each) for each in options.topics]
    except re.error as wrong:
        raise UsageError(f"{wrong.pattern!r} is no regular expression: {wrong.msg}") from None
    named = set(options.topics)
    return [
        each
        for each in sorted(topics, key=lambda each: each.name or "")
        for name in [each.name or ""]
        if name in named
        or (
            (options.internal or not name.startswith("__"))
            and (not patterns or any(pattern.fullmatch(name) for pattern in patterns))
        )
    ]


def basic(topic: MetadataResponseTopic) -> dict[str, object]:
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "replicas": max((len(each.replica_nodes) for each in topic.partitions), default=0),
        "size_bytes": None,
    }


def add_sizes(cluster: Cluster, rows: Mapping[str, dict[str, object]]) -> None:
    """On the disks of all brokers, so that each replica counts; none where the cluster does not tell."""
    sizes: dict[str, int] = {}
    for broker in cluster.nodes() if rows else ():
        try:
            answer = cluster.ask_broker(broker, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        except Unsupported:
            return
        if answer.error_code or any(each.error_code for each in answer.results):
            return
        for topic in (topic for each in answer.results for topic in each.topics):
            kept = sum(each.partition_size for each in topic.partitions if not each.is_future_key)
            sizes[topic.name] = sizes.get(topic.name, 0) + kept
    for name, row in rows.items():
        row["size_bytes"] = sizes.get(name)


def end_offsets(cluster: Cluster, topics: Iterable[MetadataResponseTopic], at: int = LATEST) -> Ends:
    """Of partitions that have a leader; the others are left out."""
    places = [
        TopicPartition(topic.name or "", each.partition_index)
        for topic in topics
        for each in topic.partitions
        if each.leader_id != NO_LEADER
    ]
    found = offsets_at(cluster, places, at)
    return {place: each.offset for place, each in found.items() if each.code == ErrorCode.NONE}


def by_topic(ends: Ends) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, offset in ends.items():
        found[place.topic] = found.get(place.topic, 0) + offset
    return found


def add_records(
    cluster: Cluster, topics: Sequence[MetadataResponseTopic], ends: Ends, rows: Mapping[str, dict[str, object]]
) -> None:
    """As offsets count: what compaction removed and what ends transactions is counted as well."""
    if topics:
        starts, sums = by_topic(end_offsets(cluster, topics, EARLIEST)), by_topic(ends)
        for name, row in rows.items():
            row["records"] = sums[name] - starts[name] if name in sums and name in starts else None


def add_rates(
    cluster: Cluster, topics: Sequence[MetadataResponseTopic], first: Ends, rows: Mapping[str, dict[str, object]]
) -> None:
    seen_s = time.monotonic()
    time.sleep(LOOKS_APART_S)
    later = end_offsets(cluster, topics)
    passed_s = time.monotonic() - seen_s
    grown = by_topic({place: max(0, end - first[place]) for place, end in later.items() if place in first})
    for name, row in rows.items():
        row["records_per_s"] = round(grown[name] / passed_s, 1) if name in grown else None


def show(rows: Sequence[Row], options: Namespace, *, wants_lag: bool) -> None:
    columns = ["topic", "partitions", "replicas"]
    if not is_for_people(options.output):
        print_rows(rows, columns=[*columns, "size_bytes"], output=options.output)
        return
    shown = [{**row, "size": size_text(row["size_bytes"]), "rate": rate_text(row.get("records_per_s"))} for row in rows]
    columns += ["records"] if options.output == WIDE else []
    columns += ["size", *(["rate"] if options.rate else []), *(["lag", "group"] if wants_lag else [])]
    print_rows(shown, columns=columns, output=options.output)


def size_text(size_bytes: object) -> str | None:
    if not isinstance(size_bytes, int):
        return None
    size, unit = float(size_bytes), 0
    while size >= UNIT_BYTES and unit < len(UNITS) - 1:
        size, unit = size / UNIT_BYTES, unit + 1
    return f"{size:.1f} {UNITS[unit]}" if unit else f"{size_bytes} B"


def rate_text(rate: object) -> str | None:
    return None if rate is None else f"{rate:,}/s"
