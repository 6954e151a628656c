"""Ranges read by Fetch requests of our own: the fast way.

It takes no decision about a cluster in trouble: whatever is out of the ordinary ends it with `LeftToLibrary`, and
librdkafka reads the rest.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from moldau.client.fetched import Aborted
from moldau.client.security import FOLLOWED as SECURITY_SETTINGS
from moldau.client.security import ClientSettings, can_secure
from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation
from moldau.core.ids import ZERO_UUID, TopicPartition
from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.clients.plain_brokers import brokers_of
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.options import READ_COMMITTED
from moldau.spark.reading.data_loss import check_same_topic
from moldau.spark.reading.record_columns import CorruptRecords, RecordsAt, to_batch
from moldau.wire.batch import HEADER_BYTES, BatchHeader, batches, payload, verify_crc
from moldau.wire.compression import Codec
from moldau.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from moldau.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

FETCH_VERSION = 11  # names topics by name; every broker since 2019 has it
TOPIC_ID_VERSION = 10  # of Metadata; every broker that gives topics ids has it
FETCH_BYTES = 4 * 1024 * 1024
DECOMPRESSED_BYTES_MAX = 1 << 28
PORTION_BYTES = 1 << 26  # an answer that unpacks to more becomes several batches: Arrow counts bytes in 31 bits
WAIT_MS = 500
EMPTY_ANSWERS_MAX = 4

# The settings that are followed here, or that make no difference here; any other is left to librdkafka.
FOLLOWED = {
    "bootstrap.servers", "client.id", "security.protocol", "isolation.level", "check.crcs", "fetch.min.bytes",
    "fetch.max.bytes", "max.partition.fetch.bytes", "fetch.wait.max.ms", "metadata.max.age.ms",
    "connections.max.idle.ms", "reconnect.backoff.ms", "reconnect.backoff.max.ms", "retry.backoff.ms",
    "retry.backoff.max.ms", "enable.metrics.push", *SECURITY_SETTINGS,
}  # fmt: skip


class LeftToLibrary(Exception):
    """The fast way does not go on from here; `position` is the first offset that was not given out."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position


@dataclass(frozen=True, slots=True)
class Portion:
    """Batches of one answer, unpacked; `next_offset` is the first that is in none of them."""

    buffer: bytes | memoryview
    visible: list[RecordsAt]
    next_offset: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """One answer: the buffer, the batches in it that readers may see, and where to go on."""

    view: memoryview
    visible: list[tuple[int, BatchHeader]]
    next_offset: int

    def portions(self, *, portion_bytes: int = PORTION_BYTES) -> Iterator[Portion]:
        """A few MB may unpack to many GB: no more is unpacked at a time than `portion_bytes` and one batch."""
        if all(header.codec == Codec.NONE for _, header in self.visible):
            # Plain batches stay where they are.
            bodies = [_records_at(header, at + HEADER_BYTES, at + header.length_bytes) for at, header in self.visible]
            yield Portion(self.view, bodies, self.next_offset)
            return
        pieces: list[bytes | bytearray | memoryview] = []
        bodies, start = [], 0
        for at, header in self.visible:
            batch = self.view[at : at + header.length_bytes]
            pieces.append(payload(batch, header, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX))
            bodies.append(_records_at(header, start, start + len(pieces[-1])))
            start = bodies[-1].end
            if start >= portion_bytes:
                yield Portion(b"".join(pieces), bodies, header.last_offset + 1)
                pieces, bodies, start = [], [], 0
        yield Portion(b"".join(pieces), bodies, self.next_offset)


def can_fetch(settings: ClientSettings) -> bool:
    given = dict(settings)
    return can_secure(given) and all(name in FOLLOWED for name in given)


def fetch_range(
    wanted: OffsetRange, settings: ClientSettings, columns: Sequence[str], *, topic_id: str | None = None
) -> Iterator[pa.RecordBatch]:
    """Ends with `OtherTopic` where the topic has another id than `topic_id` once it is read."""
    position = wanted.start
    try:
        with Leader(settings, wanted.place) as leader:
            leader.ask(position)
            while position < wanted.end:
                fetched = leader.answer(position)
                following = fetched.next_offset
                if following < wanted.end:
                    leader.ask(following)
                for portion in fetched.portions():
                    batch = to_batch(portion.buffer, portion.visible, wanted, columns) if portion.visible else None
                    position = portion.next_offset
                    if batch is not None:
                        yield batch
            if topic_id is not None:
                check_same_topic(topic_id, leader.topic_id())
    except (OSError, NoAnswer, ApiError, ProtocolViolation, CorruptRecords) as wrong:
        raise LeftToLibrary(position, str(wrong)) from wrong


class Leader:
    """A connection to the leader of one partition; one request is on its way while the last answer is worked on."""

    def __init__(self, settings: ClientSettings, place: TopicPartition) -> None:
        self.place = place
        given = dict(settings)
        self.isolation = int(given.get("isolation.level", "").lower() == READ_COMMITTED)
        # librdkafka has looked at the values before. One partition is asked for, so the lower of two limits counts.
        limits = [int(given[name]) for name in ("fetch.max.bytes", "max.partition.fetch.bytes") if name in given]
        self.bytes_max = min(limits, default=FETCH_BYTES)
        self.bytes_min = int(given.get("fetch.min.bytes", 1))
        self.wait_ms = int(given.get("fetch.wait.max.ms", WAIT_MS))
        brokers = brokers_of(settings)
        brokers.look_again()
        self.connection = brokers.new_connection(brokers.leader(place))

    def __enter__(self) -> Leader:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def ask(self, offset: int) -> None:
        partition = FetchPartition(
            partition=self.place.partition, fetch_offset=offset, partition_max_bytes=self.bytes_max
        )
        request = FetchRequest(
            max_wait_ms=self.wait_ms,
            min_bytes=self.bytes_min,
            max_bytes=self.bytes_max,
            isolation_level=self.isolation,
            topics=[FetchTopic(topic=self.place.topic, partitions=[partition])],
        )
        self.connection.ask(request, FETCH_VERSION)

    def answer(self, asked: int) -> Fetched:
        for _ in range(EMPTY_ANSWERS_MAX):
            data = self._partition_data()
            if data.error_code != ErrorCode.NONE:
                raise OSError(ErrorCode(data.error_code).name)
            if data.records is not None and len(data.records):
                return visible_batches(data, asked)
            self.ask(asked)
        raise OSError("there is nothing to read")

    def topic_id(self) -> str | None:
        """As librdkafka writes it; None where there is none. A leader knows of a topic before it serves its records."""
        wanted = MetadataRequestTopic(name=self.place.topic)
        request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
        found = self.connection.call(request, TOPIC_ID_VERSION, MetadataResponse).topics
        topic_id = found[0].topic_id if found else ZERO_UUID
        return None if topic_id == ZERO_UUID else b64encode(topic_id).rstrip(b"=").decode()

    def _partition_data(self) -> PartitionData:
        response = self.connection.answer(FetchResponse)
        if response.error_code != ErrorCode.NONE or not response.responses or not response.responses[0].partitions:
            raise OSError(f"no data for {self.place}")
        return response.responses[0].partitions[0]


def visible_batches(data: PartitionData, asked: int) -> Fetched:
    """Without control records, without those of aborted transactions, and with checksums compared."""
    view = memoryview(data.records or b"")
    kept: list[tuple[int, BatchHeader]] = []
    aborted = Aborted(data.aborted_transactions or [])
    next_offset = asked
    for at, header in batches(view, partial_tail=True):
        if not verify_crc(view, at, header):
            raise OSError(f"the checksum of the batch at offset {header.base_offset} is wrong")
        next_offset = max(next_offset, header.last_offset + 1)
        if not aborted.hides(header) and header.record_count and header.last_offset >= asked:
            kept.append((at, header))
    if next_offset == asked:
        raise OSError("a batch is larger than an answer")
    return Fetched(view, kept, next_offset)


def _records_at(header: BatchHeader, start: int, end: int) -> RecordsAt:
    return RecordsAt(
        start=start,
        end=end,
        count=header.record_count,
        base_offset=header.base_offset,
        base_timestamp_ms=header.base_timestamp,
        append_timestamp_ms=header.max_timestamp if header.is_log_append_time else None,
    )
