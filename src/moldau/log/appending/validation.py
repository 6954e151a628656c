"""What a leader checks of a produced batch before it gets offsets.

The header and the checksum are always checked. A batch is opened only when a record of it could be refused or must be
rewritten: on a compacted topic (every record needs a key), with a lower bound on timestamps, when the header's largest
timestamp is out of bounds or cannot be true, and when the topic's `compression.type` names another codec.

Apache Kafka opens every batch. So unlike it we store a batch whose records contradict its header, if the checksum is
right, the header agrees with itself and the sizes of an uncompressed batch's few records add up; and we trust the
largest timestamp that a producer states, if it is within bounds. What cannot be decompressed is an INVALID_RECORD to us
and an UNKNOWN_SERVER_ERROR to it; so is a batch that unfolds to more than we allow, for which it has no limit.
"""

from __future__ import annotations

from struct import Struct

import msgspec

from moldau.core.config.topic import TopicConfig
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.core.limits import KIB, UNFOLDED_BATCH_BYTES_MAX
from moldau.log.appending.record_sizes import RECORD_BYTES_MIN, WALKED_RECORDS_MAX, check_sizes, sizes_add_up
from moldau.log.errors import LogError
from moldau.wire.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    OVERHEAD_BYTES,
    TIMESTAMP_MAX,
    TRANSACTIONAL,
    BatchHeader,
    Codec,
    CorruptBatch,
    check_magic_known,
    declared_bytes,
    encode_header,
    payload,
    read_header,
    write_crc,
)
from moldau.wire.compression import compress
from moldau.wire.crc import crc32c
from moldau.wire.records import Buffer, InvalidRecord, Span, move_record, spans

RECORD_ERRORS_SHOWN = 3
NOTHING = -1  # no batch has these attributes
LEGACY_OVERHEAD_BYTES = (
    14  # the smallest message there ever was, which a length is held against before its magic is read
)
HEADER_TO_MAGIC_BYTES = 17
ZSTD_VERSION_MIN = 7  # older Produce versions belong to clients that cannot read zstd

OPENED_BYTES_AT_ONCE = 64 * KIB  # of records as they are: each takes a microsecond, and may be seven bytes long
UNFOLDED_BYTES_AT_ONCE = 4 * KIB  # of compressed ones, which may unfold a thousandfold

_ATTRIBUTES = Struct(">h")
_ATTRIBUTES_AND_TIMES = Struct(">h4xqq")
_MAX_TIMESTAMP = Struct(">q")
_MAX_TIMESTAMP_AT = 35


class Validated(msgspec.Struct, frozen=True, gc=False):
    """One batch fit to be appended: the producer's own bytes, unless they had to be rewritten."""

    records: memoryview
    header: BatchHeader
    log_append_time_ms: int = NO_TIMESTAMP


def check_request(records: memoryview | None, version: int) -> None:
    """What a Produce request of this version may carry for a partition: one batch of the current format."""
    if (
        records is not None
        and version >= ZSTD_VERSION_MIN
        and len(records) >= HEADER_BYTES
        and records[MAGIC_AT] == MAGIC
        and int.from_bytes(records[8:12], "big") + OVERHEAD_BYTES == len(records)
    ):
        return
    sizes = _whole_batches(records) if records else []
    if not records or not sizes:
        raise InvalidRecord(
            f"Produce requests with version {version} must have at least one record batch per partition"
        )
    only = f"Produce requests with version {version} are only allowed to contain"
    if records[MAGIC_AT] != MAGIC:
        raise InvalidRecord(f"{only} record batches with magic version {MAGIC}")
    if sizes[0] < HEADER_BYTES:
        raise CorruptBatch(
            f"Record batch is corrupt (the size {sizes[0]} is smaller than the minimum allowed overhead {HEADER_BYTES})"
        )
    if version < ZSTD_VERSION_MIN and read_header(records).codec == Codec.ZSTD:
        raise LogError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    if len(sizes) > 1:
        raise InvalidRecord(f"{only} exactly one record batch per partition")


def _whole_batches(records: memoryview) -> list[int]:
    """The sizes of the batches that are there to the end; a cut tail is ignored, as Apache Kafka ignores it."""
    sizes: list[int] = []
    at = 0
    while len(records) - at >= OVERHEAD_BYTES:
        size = declared_bytes(records, at)
        counted = size - OVERHEAD_BYTES
        if counted < LEGACY_OVERHEAD_BYTES:
            raise CorruptBatch(
                f"Record size {counted} is less than the minimum record overhead ({LEGACY_OVERHEAD_BYTES})"
            )
        if len(records) - at < HEADER_TO_MAGIC_BYTES:
            break
        check_magic_known(records, at)
        if len(records) - at < size:
            break
        sizes.append(size)
        at += size
    return sizes


class Validator:
    """The rules of one partition, worked out once from its topic's configuration."""

    __slots__ = (
        "_after_ms_max", "_before_ms_max", "_compact", "_is_append_time", "_level", "_partition",
        "_size_max", "_takes_as_is", "_target", "_unfolded_bytes_max",
    )  # fmt: skip

    def __init__(self, config: TopicConfig, partition: TopicPartition) -> None:
        self._partition = partition
        self._size_max = config.max_message_bytes
        self._is_append_time = config.message_timestamp_type == "LogAppendTime"
        self._before_ms_max = config.message_timestamp_before_max_ms
        self._after_ms_max = config.message_timestamp_after_max_ms
        self._compact = "compact" in config.cleanup_policy
        self._target, self._level = _target_codec(config)
        plain = not self._compact and not self._is_append_time and self._target in (None, Codec.NONE)
        self._takes_as_is = 0 if plain else NOTHING  # the attributes of a batch that need no second look
        self._unfolded_bytes_max = max(UNFOLDED_BATCH_BYTES_MAX, 4 * config.max_message_bytes)

    def takes_long(self, records: memoryview, now_ms: int) -> bool:
        """Whether a batch must be opened that may hold very much: in a thread, or everybody else would wait.

        `validate` looks at nothing but the batch and the time, so it may run there.
        """
        size = len(records)
        if size < HEADER_BYTES:
            return False
        attributes, base_timestamp, max_timestamp = _ATTRIBUTES_AND_TIMES.unpack_from(records, ATTRIBUTES_AT)
        if size <= (OPENED_BYTES_AT_ONCE if attributes & CODEC_MASK == 0 else UNFOLDED_BYTES_AT_ONCE):
            return False
        return self._compact or self._must_open(attributes, base_timestamp, max_timestamp, now_ms)

    def accept_own(self, records: memoryview, now_ms: int) -> Validated:
        """A batch that this broker built a moment ago: it is as the format wants it, and its checksum is right.

        The topic's configuration may still ask for another codec or timestamp type, or have no room for it.
        """
        if len(records) <= self._size_max and self._target in (None, Codec.NONE) and not self._is_append_time:
            return Validated(records, read_header(records))
        return self._validate(records, read_header(records), now_ms=now_ms, from_client=False)

    def validate(self, records: memoryview, now_ms: int) -> Validated:
        """Check a client's batch in a writable buffer; `LogError` and other `ApiError`s leave nothing half done."""
        header = read_header(records)
        size, count, attributes = len(records), header.record_count, header.attributes
        if (
            header.body_bytes + OVERHEAD_BYTES == size <= self._size_max
            and header.magic == MAGIC
            and header.base_offset == 0
            and count == header.last_offset_delta + 1
            and 0 < count <= (size - HEADER_BYTES) // RECORD_BYTES_MIN
            and (header.base_sequence >= 0 or header.producer_id < 0)
            and self._takes_as_is == attributes & ~TRANSACTIONAL
            and header.base_timestamp <= header.max_timestamp <= now_ms + self._after_ms_max
            and now_ms <= self._before_ms_max
            and (count > WALKED_RECORDS_MAX or sizes_add_up(records, count))
            and crc32c(records[ATTRIBUTES_AT:]) == header.crc
        ):
            return Validated(records, header)  # nothing is unusual: the rules below would find the same, one by one
        return self._validate(records, header, now_ms=now_ms, from_client=True)

    def _validate(self, records: memoryview, header: BatchHeader, *, now_ms: int, from_client: bool) -> Validated:
        if header.body_bytes + OVERHEAD_BYTES != len(records) or header.magic != MAGIC:
            records = self._only_batch(records)
        if header.base_offset != 0 and from_client:
            raise InvalidRecord(
                f"The baseOffset of the record batch in the append to {self._partition} should be 0, "
                f"but it is {header.base_offset}"
            )
        if len(records) > self._size_max:
            raise LogError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The record batch size in the append to {self._partition} is {len(records)} bytes which exceeds "
                f"the maximum configured value of {self._size_max}.",
            )
        if crc32c(records[ATTRIBUTES_AT:]) != header.crc:
            raise CorruptBatch(f"Record is corrupt (stored crc = {header.crc}) in topic partition {self._partition}.")
        self._check_header(header, from_client)
        if header.attributes & CODEC_MASK == 0:
            check_sizes(records, header.record_count)
        if self._compact or self._must_open(header.attributes, header.base_timestamp, header.max_timestamp, now_ms):
            return self._open(records, header, now_ms)
        if self._is_append_time:
            return self._restamp(records, header, now_ms)
        return Validated(records, header)

    def _only_batch(self, records: memoryview) -> memoryview:
        check_request(records, ZSTD_VERSION_MIN)
        return records[: declared_bytes(records, 0)]

    def _check_header(self, header: BatchHeader, from_client: bool) -> None:
        count = header.record_count
        if from_client and (count != header.last_offset_delta + 1 or count <= 0):
            raise InvalidRecord(self._count_fault(header))
        attributes = header.attributes
        if attributes & CONTROL and from_client:
            raise InvalidRecord(
                f"Clients are not allowed to write control records in topic partition {self._partition}"
            )
        if header.base_sequence < 0 <= header.producer_id and from_client:
            raise InvalidRecord(
                f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id} "
                f"in topic partition {self._partition}"
            )
        if attributes & CODEC_MASK > Codec.ZSTD:
            raise InvalidRecord(f"Unknown compression type id: {attributes & CODEC_MASK}")

    def _count_fault(self, header: BatchHeader) -> str:
        offsets = f"[{header.base_offset}, {header.last_offset}]"
        if header.last_offset_delta < 0:
            return f"Batch has an invalid offset range: {offsets} in topic partition {self._partition}"
        if header.record_count <= 0:
            return (
                f"Invalid reported count for record batch: {header.record_count} in topic partition {self._partition}"
            )
        return (
            f"Inconsistent batch offset range {offsets} and count of records {header.record_count} "
            f"in topic partition {self._partition}"
        )

    def _must_open(self, attributes: int, base_timestamp: int, newest: int, now_ms: int) -> bool:
        """Also where the header gives itself away, so that the records must say what is true."""
        if attributes & LOG_APPEND_TIME:
            return True
        if self._target is not None and attributes & CODEC_MASK != self._target:
            return True
        if self._is_append_time:
            return False
        return (
            newest - now_ms > self._after_ms_max
            or newest < base_timestamp
            or now_ms - self._before_ms_max > 0  # the oldest record need not be the first, and the header has only that
        )

    def _open(self, records: memoryview, header: BatchHeader, now_ms: int) -> Validated:
        body = payload(records, header, decompressed_bytes_max=self._unfolded_bytes_max)
        codec = header.attributes & CODEC_MASK
        in_order, newest = self._check_records(header, body, now_ms)
        max_timestamp = now_ms if self._is_append_time else newest
        if self._target not in (None, codec) and not header.is_control:
            return self._recompress(header, body, max_timestamp)
        if codec != Codec.NONE and not in_order:
            raise InvalidRecord(f"Inner record offsets are not consecutive in topic partition {self._partition}")
        return self._restamp(records, header, max_timestamp)

    def _check_records(self, header: BatchHeader, body: Buffer, now_ms: int) -> tuple[bool, int]:
        """Whether offsets are without gaps, and the largest timestamp; the records at fault are refused by name."""
        faults: list[tuple[int, ErrorCode, str]] = []
        in_order, newest, append_time = True, NO_TIMESTAMP, header.attributes & LOG_APPEND_TIME
        oldest_allowed, newest_allowed = now_ms - self._before_ms_max, now_ms + self._after_ms_max
        for index, span in enumerate(spans(body, header.record_count)):
            timestamp = header.max_timestamp if append_time else header.base_timestamp + span.timestamp_delta
            if span.key_size < 0 or append_time or not oldest_allowed <= timestamp <= newest_allowed:
                fault = self._fault(header, span, timestamp, now_ms)
                if fault is not None:
                    faults.append((index, *fault))
            newest = max(newest, timestamp)
            if span.offset_delta != index:
                in_order = False
        if faults:
            raise _refusal(faults)
        if newest > TIMESTAMP_MAX:
            raise InvalidRecord(f"Timestamp {newest} is beyond 64 bits")
        return in_order, newest

    def _fault(self, header: BatchHeader, span: Span, timestamp: int, now_ms: int) -> tuple[ErrorCode, str] | None:
        if self._compact and span.key_size < 0:
            return (
                ErrorCode.INVALID_RECORD,
                f"Compacted topic cannot accept message without key in topic partition {self._partition}",
            )
        if not self._is_append_time and timestamp != NO_TIMESTAMP:
            age_ms = now_ms - timestamp
            if age_ms > self._before_ms_max or -age_ms > self._after_ms_max:
                return (
                    ErrorCode.INVALID_TIMESTAMP,
                    f"Timestamp {timestamp} of message with offset {span.offset_delta} is out of range. The timestamp "
                    f"should be within [{now_ms - self._before_ms_max}, {now_ms + self._after_ms_max}]",
                )
        elif header.attributes & LOG_APPEND_TIME:
            return (
                ErrorCode.INVALID_TIMESTAMP,
                f"Invalid timestamp type in message DefaultRecord(offset={span.offset_delta}, timestamp={timestamp}, "
                f"key={span.key_size} bytes, value={span.value_size} bytes). Producer should not set timestamp type to "
                "LogAppendTime.",
            )
        return None

    def _restamp(self, records: memoryview, header: BatchHeader, max_timestamp: int) -> Validated:
        """Correct the timestamp type and the largest timestamp in place; the records are not touched."""
        append_time_ms = max_timestamp if self._is_append_time else NO_TIMESTAMP
        attributes = self._timestamp_flag(header)
        if attributes == header.attributes and max_timestamp == header.max_timestamp:
            return Validated(records, header, append_time_ms)
        _ATTRIBUTES.pack_into(records, ATTRIBUTES_AT, attributes)
        _MAX_TIMESTAMP.pack_into(records, _MAX_TIMESTAMP_AT, max_timestamp)
        write_crc(records, 0, len(records))
        return Validated(records, read_header(records), append_time_ms)

    def _recompress(self, header: BatchHeader, body: Buffer, max_timestamp: int) -> Validated:
        """The same records with the topic's codec, and offsets without gaps whatever the producer gave them."""
        codec = self._target
        assert codec is not None
        moved = bytearray()
        for index, span in enumerate(spans(body, header.record_count)):
            move_record(moved, body, span, offset_delta=index, timestamp_delta=span.timestamp_delta)
        attributes = self._timestamp_flag(header) & ~CODEC_MASK | codec
        batch = encode_header(
            msgspec.structs.replace(header, attributes=attributes, max_timestamp=max_timestamp),
            compress(codec, moved, level=self._level),
        )
        if len(batch) > self._size_max:
            raise LogError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"Message batch size is {len(batch)} bytes in append to partition {self._partition} which exceeds "
                f"the maximum configured size of {self._size_max}.",
            )
        append_time_ms = max_timestamp if self._is_append_time else NO_TIMESTAMP
        return Validated(memoryview(batch), read_header(batch), append_time_ms)

    def _timestamp_flag(self, header: BatchHeader) -> int:
        cleared = header.attributes & ~LOG_APPEND_TIME
        return cleared | LOG_APPEND_TIME if self._is_append_time else cleared


def _target_codec(config: TopicConfig) -> tuple[Codec | None, int | None]:
    match config.compression_type:
        case "uncompressed":
            return Codec.NONE, None
        case "gzip":
            return Codec.GZIP, config.compression_gzip_level
        case "snappy":
            return Codec.SNAPPY, None
        case "lz4":
            return Codec.LZ4, config.compression_lz4_level
        case "zstd":
            return Codec.ZSTD, config.compression_zstd_level
        case _:
            return None, None


def _refusal(faults: list[tuple[int, ErrorCode, str]]) -> LogError:
    errors = tuple((index, message) for index, _, message in faults)
    if any(code is ErrorCode.INVALID_TIMESTAMP for _, code, _ in faults):
        message = "One or more records have been rejected due to invalid timestamp"
        return LogError(ErrorCode.INVALID_TIMESTAMP, message, errors)
    shown = ", ".join(
        f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:RECORD_ERRORS_SHOWN]
    )
    return LogError(
        ErrorCode.INVALID_RECORD,
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]",
        errors,
    )
