"""Offsets that partitions begin and end at, or have at a time, asked of their leaders."""

from __future__ import annotations

import time
from collections.abc import Mapping

from moldau.client.cluster import PASSING, PAUSE_S, Cluster, Refused
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

EARLIEST, LATEST = -2, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


def list_offsets(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], *, isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    """-1 where no record is that late. `Refused` if a partition has none to tell; leaders that move are waited for."""
    deadline_s = time.monotonic() + cluster.timeout_s
    found: dict[TopicPartition, int] = {}
    while True:
        codes = _ask(cluster, {place: at for place, at in timestamps.items() if place not in found}, isolation, found)
        worst = next((code for code in codes.values() if code not in PASSING), None)
        if worst is None and codes and time.monotonic() < deadline_s:
            time.sleep(PAUSE_S)
            continue
        for place, code in codes.items():
            if worst is None or code == worst:
                raise Refused(code, f"{place}: {ErrorCode(code).message}")
        return found


def _ask(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], isolation: int, found: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The error codes of those places that gave no offset."""
    led, codes = cluster.led(timestamps)
    codes = dict(codes)
    for broker_id, places in led.items():
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for place in places:
            asked = ListOffsetsPartition(partition_index=place.partition, timestamp=timestamps[place])
            topics.setdefault(place.topic, []).append(asked)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        )
        for topic in cluster.ask_broker(broker_id, request, ListOffsetsResponse).topics:
            for each in topic.partitions:
                place = TopicPartition(topic.name, each.partition_index)
                if each.error_code == ErrorCode.NONE:
                    found[place] = each.offset
                else:
                    codes[place] = each.error_code
    return codes
