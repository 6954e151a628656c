"""Questions that only the leaders of partitions answer. Whoever leads is asked, and asked again while that changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from moldau.client.cluster import PASSING, PAUSE_S, Cluster
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages import ListOffsetsRequest, ListOffsetsResponse
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

MOVING = PASSING | {ErrorCode.OFFSET_NOT_AVAILABLE}
LEARNING = MOVING | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
"""Of a leader that another broker names: it has not heard yet of a topic that was just made, or deleted."""
CONSUMER = -1  # instead of a replica's id
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class Answer(NamedTuple):
    code: int
    offset: int = -1
    timestamp_ms: int = -1


Answers = dict[TopicPartition, Answer]


def ask_leaders(
    cluster: Cluster,
    places: Iterable[TopicPartition],
    ask: Callable[[int, Sequence[TopicPartition]], Answers],
    *,
    waits_for_elections: bool = True,
) -> Answers:
    """An answer for each place. A leader that moves is followed until the time is up, and one that is to be elected."""
    deadline_s = time.monotonic() + cluster.timeout_s
    answers: Answers = {}
    left = list(places)
    while left:
        led, unled = cluster.led(left)
        answers |= {place: Answer(code) for place, code in unled.items()}
        for broker, theirs in led.items():
            answers |= ask(broker, theirs)
        asked = left if waits_for_elections else [place for place in left if place not in unled]
        left = [place for place in asked if answers[place].code in (MOVING if place in unled else LEARNING)]
        if left and time.monotonic() >= deadline_s:
            break
        if left:
            time.sleep(PAUSE_S)
    return answers


def offsets_of(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation: int = READ_UNCOMMITTED,
    waits_for_elections: bool = True,
) -> Answers:
    """The first offset at each time or later, or at one of ListOffsets' names for places; -1 is none."""

    def ask(broker: int, theirs: Sequence[TopicPartition]) -> Answers:
        topics = [
            ListOffsetsTopic(name, [ListOffsetsPartition(each.partition, timestamp=timestamps[each]) for each in some])
            for name, some in by_topic(theirs)
        ]
        request = ListOffsetsRequest(
            replica_id=CONSUMER,
            isolation_level=isolation,
            topics=topics,
            timeout_ms=round(cluster.timeout_s * 1_000),
        )
        return {
            TopicPartition(topic.name, each.partition_index): Answer(each.error_code, each.offset, each.timestamp)
            for topic in cluster.ask_broker(broker, request, ListOffsetsResponse).topics
            for each in topic.partitions
        }

    return ask_leaders(cluster, timestamps, ask, waits_for_elections=waits_for_elections)


def by_topic(places: Iterable[TopicPartition]) -> list[tuple[str, list[TopicPartition]]]:
    name = attrgetter("topic")
    return [(topic, list(some)) for topic, some in groupby(sorted(places), key=name)]
