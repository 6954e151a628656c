"""Which records are of one key, where keys are no bytes but what a format made of them.

Bytes say at once which record replaces which, and one producer puts the same bytes into one partition. A key of a
registry has other bytes by each schema that wrote it, and so may be in several partitions: what it means counts then.
Within a partition the later record is the newer one; between partitions there is nothing but the time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import isnan

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RecordKey:
    """Of one record, with what tells its age."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Hashable


def are_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def record_keys(records: pa.Table, prefix: str = "") -> list[RecordKey]:
    """`prefix` stands before the names of the columns."""
    named = ("topic", "partition", "offset", "timestamp", "key")
    columns = (comparable(records[f"{prefix}{name}"]) for name in named)
    return [RecordKey(*record) for record in zip(*columns, strict=True)]


def newest_places(records: Iterable[RecordKey]) -> set[int]:
    """Of each key of a topic; a record without a key is nobody's successor."""
    told = list(records)
    keyless = {place for place, record in enumerate(told) if record.key is None}
    in_partitions: dict[Hashable, int] = {}
    for place, record in enumerate(told):
        identity = (record.topic, record.partition, record.key)
        if identity not in in_partitions or record.offset > told[in_partitions[identity]].offset:
            in_partitions[identity] = place
    newest: dict[Hashable, int] = {}
    for place in in_partitions.values():
        record = told[place]
        known = newest.get((record.topic, record.key))
        if known is None or _age(record) > _age(told[known]):
            newest[record.topic, record.key] = place
    return keyless | {place for place in newest.values() if told[place].key is not None}


def _age(record: RecordKey) -> tuple[int, int]:
    return record.timestamp, record.offset


def comparable(column: pa.Array | pa.ChunkedArray) -> list[Hashable]:
    """Values that are equal, and of one hash, where Spark takes them for equal."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = array.type
    if pa.types.is_struct(kind):
        members = zip(*map(comparable, array.flatten()), strict=True) if kind.num_fields else [()] * len(array)
        return [row if there else None for row, there in zip(members, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_temporal(kind):  # Python has none beyond the year 9999
        return list(array.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_pylist())
    values = array.to_pylist()
    if pa.types.is_floating(kind):
        return ["NaN" if value is not None and isnan(value) else value for value in values]
    if pa.types.is_nested(kind):
        return [None if value is None else repr(value) for value in values]
    return list(values)
