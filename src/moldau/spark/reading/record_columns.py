"""Record batches parsed into Arrow columns by numpy: no Python object for a record, its key or its value.

Only the chain of record lengths is followed in Python, about 0.1 us for a record; every other field is read for all
records of a fetch at once, and keys and values are gathered by Arrow from the bytes as they came from the broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from moldau.core.ids import TopicPartition
from moldau.spark.columns import HEADERS, RAW_SCHEMA, raw_schema_of
from moldau.spark.offsets.bounds import OffsetRange

Int64s: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]

CREATE_TIME = 0
APPEND_TIME = 1
VARINT_BYTES_MAX = 10


class CorruptRecords(ValueError):
    """Bytes that are no records."""


@dataclass(frozen=True, slots=True)
class RecordsAt:
    """The records of one batch: where they stand in the buffer, and what the batch's header says about them."""

    start: int
    end: int
    count: int
    base_offset: int
    base_timestamp_ms: int
    append_timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class Fields:
    """Of each record: offset, time, and where its parts are. A length of -1 means that there is none."""

    offsets: Int64s
    timestamps_ms: Int64s
    timestamp_types: npt.NDArray[np.int32]
    key_at: Int64s
    key_bytes: Int64s
    value_at: Int64s
    value_bytes: Int64s
    headers: Int64s
    headers_at: Int64s

    def between(self, low: int, high: int) -> Fields:
        return Fields(*(getattr(self, name)[low:high] for name in self.__slots__))


def to_batch(
    buffer: Any, batches: Sequence[RecordsAt], wanted: OffsetRange, columns: Sequence[str]
) -> pa.RecordBatch | None:
    """The wanted records among those of the batches; None if there are none."""
    data: Bytes = np.frombuffer(buffer, np.uint8)
    fields = read_fields(buffer, data, batches)
    low, high = np.searchsorted(fields.offsets, (wanted.start, wanted.end))
    fields = fields.between(int(low), int(high))
    if not len(fields.offsets):
        return None
    arrays = [_column(name, data, fields, wanted.place) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=raw_schema_of(columns))


def read_fields(buffer: Any, data: Bytes, batches: Sequence[RecordsAt]) -> Fields:
    starts: list[int] = []
    for batch in batches:
        _follow_lengths(buffer, batch, starts)
    at = np.array(starts, np.int64) + 1  # the attributes of a record are one byte without meaning
    try:
        timestamp_deltas, at = read_varints(data, at)
        offset_deltas, at = read_varints(data, at)
        key_bytes, key_at = read_varints(data, at)
        value_bytes, value_at = read_varints(data, key_at + np.maximum(key_bytes, 0))
        headers, headers_at = read_varints(data, value_at + np.maximum(value_bytes, 0))
    except IndexError:
        raise CorruptRecords("a record reaches beyond its batch") from None
    counts = [batch.count for batch in batches]
    timestamps_ms = np.repeat(np.array([batch.base_timestamp_ms for batch in batches], np.int64), counts)
    timestamps_ms += timestamp_deltas
    types = np.full(len(timestamps_ms), CREATE_TIME, np.int32)
    _put_append_times(batches, timestamps_ms, types)
    return Fields(
        offsets=np.repeat(np.array([batch.base_offset for batch in batches], np.int64), counts) + offset_deltas,
        timestamps_ms=timestamps_ms,
        timestamp_types=types,
        key_at=key_at,
        key_bytes=key_bytes,
        value_at=value_at,
        value_bytes=value_bytes,
        headers=headers,
        headers_at=headers_at,
    )


def _put_append_times(batches: Sequence[RecordsAt], timestamps_ms: Int64s, types: npt.NDArray[np.int32]) -> None:
    """Where the broker's time counts, the header has it for all records of the batch."""
    low = 0
    for batch in batches:
        if batch.append_timestamp_ms is not None:
            timestamps_ms[low : low + batch.count] = batch.append_timestamp_ms
            types[low : low + batch.count] = APPEND_TIME
        low += batch.count


def _follow_lengths(buffer: Any, batch: RecordsAt, starts: list[int]) -> None:
    """Append where each record's content begins. The loop is the price of varints: kept to a few operations."""
    at, append = batch.start, starts.append
    try:
        for _ in range(batch.count):
            first = buffer[at]
            if first < 0x80:
                at += 1
                append(at)
                at += first >> 1
                continue
            second = buffer[at + 1]
            if second < 0x80:
                at += 2
                append(at)
                at += (first & 0x7F | second << 7) >> 1
                continue
            size, at = _long_length(buffer, at)
            append(at)
            at += size
    except IndexError:
        at = -1
    if at != batch.end:
        raise CorruptRecords("the records do not fill their batch")


def _long_length(buffer: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    for position in range(at, at + VARINT_BYTES_MAX):
        byte = buffer[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1, position + 1
        shift += 7
    raise CorruptRecords("a length has no end")


def read_varints(data: Bytes, at: Int64s) -> tuple[Int64s, Int64s]:
    """One zigzag varint at each position, and the positions after them."""
    first = data[at]
    value = (first & 0x7F).astype(np.int64)
    after = at + 1
    longer = np.flatnonzero(first >= 0x80)
    shift = 7
    while len(longer):
        if shift > 7 * (VARINT_BYTES_MAX - 1):
            raise CorruptRecords("a number has no end")
        byte = data[after[longer]]
        value[longer] |= (byte & 0x7F).astype(np.int64) << shift
        after[longer] += 1
        longer = longer[byte >= 0x80]
        shift += 7
    # The topmost bit of ten bytes is the sign's, so the shift has to be a logical one.
    return (value.view(np.uint64) >> np.uint64(1)).view(np.int64) ^ -(value & 1), after


def _column(name: str, data: Bytes, fields: Fields, place: TopicPartition) -> pa.Array:
    if name == "key":
        return gather(data, fields.key_at, fields.key_bytes)
    if name == "value":
        return gather(data, fields.value_at, fields.value_bytes)
    if name == "offset":
        return _numbers(pa.int64(), fields.offsets)
    if name == "timestamp":
        return _numbers(RAW_SCHEMA.field(name).type, fields.timestamps_ms * 1000)
    if name == "timestampType":
        return _numbers(pa.int32(), fields.timestamp_types)
    if name == HEADERS:
        return _headers(data, fields)
    value = place.topic if name == "topic" else place.partition
    return pa.repeat(pa.scalar(value, RAW_SCHEMA.field(name).type), len(fields.offsets))


def _numbers(arrow_type: pa.DataType, values: npt.NDArray[Any]) -> pa.Array:
    """As `pa.array`, which would import pandas first: half a second of every worker's life."""
    return pa.Array.from_buffers(arrow_type, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def gather(data: Bytes, at: Int64s, sizes: Int64s) -> pa.Array:
    """The pieces of a buffer, in order, as a binary column.

    The buffer as it is becomes a column of pieces and gaps by turns, for which nothing is copied; then every second
    element is taken, which Arrow does at the speed of memory.
    """
    count = len(at)
    if count and (int(sizes.min()) < -1 or int((at + sizes).max()) > len(data)):
        raise CorruptRecords("a key or a value reaches beyond its batch")
    edges = np.empty(2 * count, np.int32)
    edges[0::2] = at
    edges[1::2] = at + np.maximum(sizes, 0)
    turns = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)])
    pieces = turns.take(_numbers(pa.int32(), np.arange(0, 2 * count, 2, dtype=np.int32)))
    if int(sizes.min()) >= 0:
        return pieces
    present = pa.py_buffer(np.packbits(sizes >= 0, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), count, [present, *pieces.buffers()[1:]])


def _headers(data: Bytes, fields: Fields) -> pa.Array:
    """Records with headers are few where speed matters: they are read one by one."""
    headers: list[list[dict[str, Any]] | None] = [None] * len(fields.headers)
    raw = memoryview(data.data)
    for index in np.flatnonzero(fields.headers > 0).tolist():
        at = int(fields.headers_at[index])
        found = []
        for _ in range(int(fields.headers[index])):
            key, at = _piece(raw, at)
            value, at = _piece(raw, at)
            found.append({"key": (key or b"").decode("utf-8", "replace"), "value": value})
        headers[index] = found
    return pa.array(headers, RAW_SCHEMA.field(HEADERS).type)


def _piece(raw: memoryview, at: int) -> tuple[bytes | None, int]:
    if raw[at] == 1:  # -1 in zigzag
        return None, at + 1
    size, at = _long_length(raw, at)
    if at + size > len(raw):
        raise CorruptRecords("a header reaches beyond its batch")
    return bytes(raw[at : at + size]), at + size
