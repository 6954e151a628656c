"""Questions that only the leaders of partitions answer: offsets by time, and to delete records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moldau.client.cluster import Cluster, Refused
from moldau.client.leaders import Answer, Answers, ask_leaders, by_topic, offsets_of
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.api import ApiKey
from moldau.wire.messages import DeleteRecordsRequest, DeleteRecordsResponse
from moldau.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The version of ListOffsets that knows a time that is none; an older one would look for that timestamp."""
HIGH_WATERMARK = -1  # for DeleteRecords


def offsets_at(cluster: Cluster, places: Iterable[TopicPartition], timestamp_ms: int) -> Answers:
    """The first offset at this time or later, or at one of the names above; -1 is none."""
    since = SINCE.get(timestamp_ms)
    wanted = dict.fromkeys(places, timestamp_ms)
    if since is not None:
        _check_leaders(cluster, wanted, timestamp_ms, since)
    return offsets_of(cluster, wanted)


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


def _check_leaders(cluster: Cluster, places: Iterable[TopicPartition], timestamp_ms: int, since: int) -> None:
    """Raises Refused if one of those that lead is too old to know this name."""
    led, _ = cluster.led(places)
    for broker in led:
        if cluster.versions_of(broker)[ApiKey.LIST_OFFSETS][1] < since:
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"broker {broker} knows no offsets at {timestamp_ms}")
