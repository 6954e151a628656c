"""A column of framed records taken apart: which schema wrote each, and the payloads of each schema together.

Nearly all records have the id of one schema before them: those are told apart by numpy, and no Python object is made of
any. What has its id in a header, or a GUID, or message indexes other than of the first message, is read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moldau.schemas.framing import FIRST_MESSAGE, ID_BYTES, ID_MAX, MAGIC_ID, header_name, read_frame
from moldau.schemas.model import InvalidValue
from moldau.spark.reading.record_columns import Bytes, Int64s, gather

PREFIX_BYTES = 1 + ID_BYTES
NOT_PLAIN = -1


@dataclass(frozen=True, slots=True)
class Written:
    """The schema of some records, and with Protobuf the message in it."""

    schema: int | UUID
    message: tuple[int, ...] = ()


@dataclass(slots=True)
class Group:
    """Records of one schema, by their rows in the column."""

    written: Written
    rows: Int64s
    payloads: pa.BinaryArray


@dataclass(slots=True)
class Apart:
    groups: list[Group]
    failures: dict[int, str] = field(default_factory=dict)


def taken_apart(column: pa.BinaryArray, headers: pa.Array | None, *, is_key: bool, indexed: bool) -> Apart:
    """`indexed` are Protobuf's records, with message indexes behind the id."""
    bytes_ = _Bytes(column)
    ids, looked_at = bytes_.ids(), bytes_.present
    by_header = _rows_with_header(headers, header_name(is_key))
    if len(by_header):
        ids[by_header] = NOT_PLAIN
    if indexed:
        ids[bytes_.rows_without_first_message(ids)] = NOT_PLAIN
    apart = Apart([])
    skipped = PREFIX_BYTES + (1 if indexed else 0)
    for found in np.unique(ids[ids >= 0]).tolist():
        rows = np.flatnonzero(ids == found)
        written = Written(found, FIRST_MESSAGE if indexed else ())
        apart.groups.append(Group(written, rows, bytes_.after(rows, skipped)))
    single = looked_at[ids[looked_at] == NOT_PLAIN]
    if len(single):
        apart.groups += _one_by_one(column, headers, single, apart.failures, is_key=is_key, indexed=indexed)
    return apart


class _Bytes:
    """A column's values as they lie in memory."""

    def __init__(self, column: pa.BinaryArray) -> None:
        count = len(column)
        offsets, data = column.buffers()[1], column.buffers()[2]
        known = np.zeros(1, np.int32) if offsets is None else np.frombuffer(offsets, np.int32)
        edges: Int64s = known[column.offset : column.offset + count + 1].astype(np.int64)
        self.data: Bytes = np.frombuffer(data if data is not None else b"", np.uint8)
        self.starts: Int64s = edges[:-1]
        self.sizes: Int64s = np.diff(edges)
        self.is_present = column.is_valid().to_numpy(zero_copy_only=False)
        self.present: Int64s = np.flatnonzero(self.is_present)

    def ids(self) -> Int64s:
        """The id before each payload; -1 where there is none, and at nulls."""
        ids = np.full(len(self.starts), NOT_PLAIN, np.int64)
        rows = np.flatnonzero((self.sizes >= PREFIX_BYTES) & self.is_present)
        at = self.starts[rows]
        found = np.zeros(len(rows), np.int64)
        for byte in range(ID_BYTES):
            found = found << 8 | self.data[at + 1 + byte]
        ids[rows] = np.where((self.data[at] == MAGIC_ID) & (found <= ID_MAX), found, NOT_PLAIN)
        return ids

    def rows_without_first_message(self, ids: Int64s) -> Int64s:
        """Rows whose message is not the first of its file, which a single 0x00 says."""
        plain: Int64s = np.flatnonzero(ids >= 0)
        is_longer = self.sizes[plain] > PREFIX_BYTES
        is_first = np.zeros(len(plain), np.bool_)
        is_first[is_longer] = self.data[self.starts[plain[is_longer]] + PREFIX_BYTES] == 0
        return plain[~is_first]

    def after(self, rows: Int64s, skipped: int) -> pa.BinaryArray:
        return gather(self.data, self.starts[rows] + skipped, self.sizes[rows] - skipped)


def _rows_with_header(headers: pa.Array | None, name: str) -> Int64s:
    none = np.empty(0, np.int64)
    if headers is None or headers.null_count == len(headers):
        return none
    pairs = headers.flatten()
    if not len(pairs):
        return none
    named = pc.equal(pairs.field("key"), name).to_numpy(zero_copy_only=False)
    parents = pc.list_parent_indices(headers).to_numpy()
    rows: Int64s = np.unique(parents[np.flatnonzero(named)]).astype(np.int64)
    return rows


def _one_by_one(
    column: pa.BinaryArray,
    headers: pa.Array | None,
    rows: Int64s,
    failures: dict[int, str],
    *,
    is_key: bool,
    indexed: bool,
) -> Iterator[Group]:
    found: dict[Written, list[tuple[int, bytes]]] = {}
    for row in rows.tolist():
        told = headers[row].as_py() if headers is not None else None
        pairs = [(pair["key"], pair["value"]) for pair in told or []]
        try:
            frame = read_frame(column[row].as_py(), is_key, pairs)
            message, payload = frame.content(indexed=indexed)
        except InvalidValue as wrong:
            failures[row] = str(wrong)
            continue
        found.setdefault(Written(frame.schema, message), []).append((row, payload))
    for written, records in found.items():
        places = np.array([row for row, _ in records], np.int64)
        yield Group(written, places, pa.array([payload for _, payload in records], pa.binary()))
