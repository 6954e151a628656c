"""Offsets of partitions by their leaders: where a log begins and ends, and what was written at some time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from moldau.client.cluster import PASSING, PAUSE_S, Cluster
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages import ListOffsetsRequest, ListOffsetsResponse
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

EARLIEST, LATEST = -2, -1  # instead of a timestamp
NONE_SO_LATE = -1  # instead of an offset
MOVING = PASSING | {ErrorCode.OFFSET_NOT_AVAILABLE}
CONSUMER = -1  # instead of a replica's id

Found = dict[TopicPartition, int]
Codes = dict[TopicPartition, int]


def offsets_at(cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> tuple[Found, Codes]:
    """The first offset at each timestamp or later, EARLIEST or LATEST, and an error code for each that has none.

    A leader that moves is followed; a partition that nobody leads now is not waited for.
    """
    deadline_s = time.monotonic() + cluster.timeout_s
    found: Found = {}
    refused: Codes = {}
    left = dict(wanted)
    while left:
        led, unled = cluster.led(left)
        refused.update(unled)
        moved = []
        for broker_id, places in led.items():
            for place, code, offset in _asked(cluster, broker_id, {place: left[place] for place in places}):
                if code == ErrorCode.NONE:
                    found[place] = offset
                    refused.pop(place, None)
                else:
                    refused[place] = code
                    moved += [place] if code in MOVING else []
        if not moved or time.monotonic() >= deadline_s:
            break
        time.sleep(PAUSE_S)
        left = {place: left[place] for place in moved}
    return found, refused


def _asked(
    cluster: Cluster, broker_id: int, wanted: Mapping[TopicPartition, int]
) -> Iterator[tuple[TopicPartition, int, int]]:
    topics = [
        ListOffsetsTopic(
            topic, [ListOffsetsPartition(place.partition, timestamp=timestamp) for place, timestamp in places]
        )
        for topic, places in groupby(sorted(wanted.items()), key=lambda each: each[0].topic)
    ]
    request = ListOffsetsRequest(replica_id=CONSUMER, topics=topics, timeout_ms=round(cluster.timeout_s * 1_000))
    for each in cluster.ask_broker(broker_id, request, ListOffsetsResponse).topics:
        for part in each.partitions:
            yield TopicPartition(each.name, part.partition_index), part.error_code, part.offset


def starts(cluster: Cluster, places: Iterable[TopicPartition]) -> tuple[Found, Codes]:
    return offsets_at(cluster, dict.fromkeys(places, EARLIEST))


def ends(cluster: Cluster, places: Iterable[TopicPartition]) -> tuple[Found, Codes]:
    return offsets_at(cluster, dict.fromkeys(places, LATEST))


def partitions_of(cluster: Cluster, topics: Iterable[str]) -> tuple[list[TopicPartition], dict[str, int]]:
    """All partitions of these topics, in order, and an error code for each topic that can't be asked about."""
    wanted = list(dict.fromkeys(topics))
    if not wanted:
        return [], {}
    found = cluster.metadata(wanted).topics
    refused = {each.name or "": each.error_code for each in found if each.error_code != ErrorCode.NONE}
    places = [TopicPartition(each.name or "", part.partition_index) for each in found for part in each.partitions]
    return sorted(place for place in places if place.topic not in refused), refused
