"""Replicas' files side by side: below the high watermark they hold the same batches, byte for byte.

Segments may begin at different offsets, because each broker rolls its own, so batches are compared and not files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_START = struct.Struct(">qi")
_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23
_HEADER_BYTES = 61


@dataclass(frozen=True, slots=True)
class Batch:
    base_offset: int
    next_offset: int
    data: bytes


class Damaged(Exception):
    """A file holds something that is no batch."""


def batches(directory: Path) -> Iterator[Batch]:
    """All batches of a partition's folder in order; what a write left torn at the end is no batch."""
    for path in sorted(directory.glob("*.log")):
        yield from _batches_of(path)


def _batches_of(path: Path) -> Iterator[Batch]:
    data, at = path.read_bytes(), 0
    while at + _HEADER_BYTES <= len(data):
        base_offset, length = _START.unpack_from(data, at)
        end = at + _START.size + length
        if length < _HEADER_BYTES - _START.size:
            raise Damaged(f"{path.name} has no batch at position {at}")
        if end > len(data):
            return
        (delta,) = _LAST_OFFSET_DELTA.unpack_from(data, at + _LAST_OFFSET_DELTA_AT)
        yield Batch(base_offset, base_offset + delta + 1, data[at:end])
        at = end


def differences(name: str, replicas: Mapping[int, Path], *, high_watermark: int, start_offset: int = 0) -> list[str]:
    """What differs between the folders of one partition, by broker: the first difference of each to the first one."""
    found = []
    (first_id, first), *others = sorted(replicas.items())
    for broker_id, directory in others:
        try:
            wrong = _first_difference(first, directory, start_offset, high_watermark)
        except (Damaged, OSError) as error:
            wrong = str(error)
        if wrong is not None:
            found.append(f"{name} on brokers {first_id} and {broker_id}: {wrong}")
    return found


def _first_difference(left: Path, right: Path, start_offset: int, high_watermark: int) -> str | None:
    lefts, rights = (_below(batches(each), start_offset, high_watermark) for each in (left, right))
    expected = start_offset
    while True:
        one, other = next(lefts, None), next(rights, None)
        if one is None and other is None:
            return None if expected >= high_watermark else f"both end at offset {expected}, below {high_watermark}"
        if one is None or other is None:
            return f"one ends at offset {expected}, below the high watermark {high_watermark}"
        if one.data != other.data:
            return f"the batches from offset {expected} on differ ({one.base_offset} and {other.base_offset})"
        expected = one.next_offset


def _below(stream: Iterator[Batch], start_offset: int, high_watermark: int) -> Iterator[Batch]:
    for batch in stream:
        if batch.base_offset >= high_watermark:
            return
        if batch.next_offset > start_offset:
            yield batch
