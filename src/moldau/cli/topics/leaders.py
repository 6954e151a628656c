"""Questions that only the leaders of partitions answer: offsets by time, and to delete records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from moldau.client.cluster import PASSING, PAUSE_S, Cluster, Refused
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.api import ApiKey
from moldau.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from moldau.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The version of ListOffsets that knows a time that is none; an older one would look for that timestamp."""
HIGH_WATERMARK = -1  # for DeleteRecords
READER = -1  # who asks is no replica


class Answer(NamedTuple):
    code: int
    offset: int = -1
    timestamp_ms: int = -1


Answers = dict[TopicPartition, Answer]


def offsets_at(cluster: Cluster, places: Iterable[TopicPartition], timestamp_ms: int) -> Answers:
    """The first offset at this time or later, or at one of the names above; -1 is none."""

    def ask(broker: int, theirs: Sequence[TopicPartition]) -> Answers:
        newest = cluster.versions_of(broker)[ApiKey.LIST_OFFSETS][1]
        if newest < SINCE.get(timestamp_ms, 0):
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"broker {broker} knows no offsets at {timestamp_ms}")
        topics = [
            ListOffsetsTopic(name, [ListOffsetsPartition(each.partition, timestamp=timestamp_ms) for each in some])
            for name, some in by_topic(theirs)
        ]
        request = ListOffsetsRequest(replica_id=READER, topics=topics, timeout_ms=int(cluster.timeout_s * 1000))
        answer = cluster.ask_broker(broker, request, ListOffsetsResponse)
        return {
            TopicPartition(topic.name, each.partition_index): Answer(each.error_code, each.offset, each.timestamp)
            for topic in answer.topics
            for each in topic.partitions
        }

    return ask_leaders(cluster, places, ask)


def delete_records(cluster: Cluster, before: Mapping[TopicPartition, int]) -> Answers:
    """The offset of an answer is where the partition begins afterwards."""

    def ask(broker: int, theirs: Sequence[TopicPartition]) -> Answers:
        topics = [
            DeleteRecordsTopic(name, [DeleteRecordsPartition(each.partition, before[each]) for each in some])
            for name, some in by_topic(theirs)
        ]
        request = DeleteRecordsRequest(topics=topics, timeout_ms=int(cluster.timeout_s * 1000))
        answer = cluster.ask_broker(broker, request, DeleteRecordsResponse)
        return {
            TopicPartition(topic.name, each.partition_index): Answer(each.error_code, each.low_watermark)
            for topic in answer.topics
            for each in topic.partitions
        }

    return ask_leaders(cluster, before, ask)


def by_topic(places: Iterable[TopicPartition]) -> list[tuple[str, list[TopicPartition]]]:
    name = attrgetter("topic")
    return [(topic, list(some)) for topic, some in groupby(sorted(places), key=name)]


def ask_leaders(
    cluster: Cluster, places: Iterable[TopicPartition], ask: Callable[[int, Sequence[TopicPartition]], Answers]
) -> Answers:
    """An answer for each place; where a leader is being elected, it is asked for again until the time is up."""
    deadline_s = time.monotonic() + cluster.timeout_s
    answers: Answers = {}
    left = list(places)
    while left:
        led, unled = cluster.led(left)
        answers |= {place: Answer(code) for place, code in unled.items()}
        for broker, theirs in led.items():
            answers |= ask(broker, theirs)
        left = [place for place in left if answers[place].code in PASSING]
        if left and time.monotonic() >= deadline_s:
            break
        if left:
            time.sleep(PAUSE_S)
    return answers
