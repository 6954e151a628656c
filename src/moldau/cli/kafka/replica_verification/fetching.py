"""What each replica has from certain offsets on, as it says itself: a follower answers, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.cli.kafka.replica_verification.comparing import Fetched
from moldau.client.cluster import Cluster, NoAnswer, check
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.api import ApiKey
from moldau.wire.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from moldau.wire.messages.fetch import FetchPartition, FetchTopic, ReplicaState
from moldau.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

DEBUGGING_CONSUMER = -2  # a replica by its number, which brokers let read wherever it asks
CONSUMER = -1
IDENTITY_VERSION = 15  # of Fetch; from here on a replica says who it is in another field
ANSWER_BYTES_MAX = 64 << 20
LATEST = -1


def start_offsets(client: Cluster, places: Iterable[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
    """Where there is no record of this time or a later one, it is the end."""
    found = _offsets(client, places, timestamp_ms)
    missing = [place for place, offset in found.items() if offset < 0]
    return found | (_offsets(client, missing, LATEST) if missing else {})


def _offsets(client: Cluster, places: Iterable[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
    led, unled = client.led(places)
    for code in unled.values():
        check(code)
    found: dict[TopicPartition, int] = {}
    for broker_id, own in led.items():
        topics = [
            ListOffsetsTopic(topic, [ListOffsetsPartition(each, timestamp=timestamp_ms) for each in indexes])
            for topic, indexes in _by_topic(own).items()
        ]
        answer = client.ask_broker(
            broker_id, ListOffsetsRequest(replica_id=CONSUMER, topics=topics), ListOffsetsResponse
        )
        for topic in answer.topics:
            for each in topic.partitions:
                check(each.error_code)
                found[TopicPartition(topic.name, each.partition_index)] = each.offset
    return found


def _by_topic(places: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in places:
        found.setdefault(topic, []).append(partition)
    return found


def fetch(
    client: Cluster,
    broker_id: int,
    offsets: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, bytes],
    *,
    fetch_bytes: int,
    max_wait_ms: int,
) -> dict[TopicPartition, Fetched]:
    """A broker that is away has nothing, and is asked again in the next round."""
    topics = [
        FetchTopic(
            topic,
            topic_ids[topic],
            [
                FetchPartition(each, fetch_offset=offsets[TopicPartition(topic, each)], partition_max_bytes=fetch_bytes)
                for each in indexes
            ],
        )
        for topic, indexes in _by_topic(offsets).items()
    ]
    request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=ANSWER_BYTES_MAX, topics=topics)
    try:
        if client.versions_of(broker_id)[ApiKey.FETCH][1] >= IDENTITY_VERSION:
            request.replica_state = ReplicaState(DEBUGGING_CONSUMER)
        else:
            request.replica_id = DEBUGGING_CONSUMER
        answer = client.ask_broker(broker_id, request, FetchResponse)
    except NoAnswer:
        return {}
    names = {bytes(each): name for name, each in topic_ids.items()}
    return {
        TopicPartition(topic.topic or names[bytes(topic.topic_id)], each.partition_index): Fetched(
            each.high_watermark, each.records
        )
        for topic in answer.responses
        for each in topic.partitions
        if each.error_code == ErrorCode.NONE
    }
