"""Whether the records of a topic have keys, by a look at the newest ones of each partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moldau.client.cluster import Cluster, check
from moldau.core.ids import TopicPartition
from moldau.wire.batch import batches, records
from moldau.wire.messages import FetchRequest, FetchResponse
from moldau.wire.messages.fetch import FetchPartition, FetchTopic, PartitionData
from moldau.wire.messages.metadata import MetadataResponseTopic
from moldau.wire.records import Record

# A broker gives the first batch whole, however large; a look needs no more than that one.
PARTITION_BYTES = 1
BATCH_BYTES_MAX = 100 << 20  # decompressed


def have_keys(cluster: Cluster, topic: MetadataResponseTopic, ends: Mapping[TopicPartition, int]) -> bool:
    """The ends are those of partitions that hold something."""
    led, _ = cluster.led(ends)
    return any(
        record.key is not None
        for broker, places in led.items()
        for place in places
        for record in newest(cluster, broker, topic, place.partition, ends[place])
    )


def newest(cluster: Cluster, broker: int, topic: MetadataResponseTopic, partition: int, end: int) -> Iterator[Record]:
    """The records of the last batch; what ends a transaction is none."""
    asked = FetchPartition(partition, fetch_offset=end - 1, partition_max_bytes=PARTITION_BYTES)
    request = FetchRequest(topics=[FetchTopic(topic.name or "", topic.topic_id, [asked])])
    answer = cluster.ask_broker(broker, request, FetchResponse)
    check(answer.error_code)
    for found in (each for one in answer.responses for each in one.partitions):
        check(found.error_code)
        yield from data_of(found)


def data_of(found: PartitionData) -> Iterator[Record]:
    view = memoryview(found.records or b"")
    for at, header in batches(view, partial_tail=True):
        if not header.is_control:
            batch = view[at : at + header.length_bytes]
            yield from records(batch, decompressed_bytes_max=BATCH_BYTES_MAX)
