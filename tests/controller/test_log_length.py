"""When the metadata log is replaced by a snapshot: by the number of its entries, and by their bytes."""

from __future__ import annotations

from moldau.controller.log_length import (
    BYTES_PER_SNAPSHOT_MIN,
    ENTRIES_PER_SNAPSHOT_MAX,
    ENTRIES_PER_SNAPSHOT_MIN,
    LogLength,
)
from moldau.core.limits import MIB


def added(length: LogLength, entries: int, size: int) -> bool:
    for _ in range(entries):
        length.add(bytes(size))
    return length.is_too_long


def test_a_thousand_small_entries_are_too_long() -> None:
    length = LogLength()
    assert not added(length, ENTRIES_PER_SNAPSHOT_MIN - 1, 10)
    assert added(length, 1, 10)
    length.took_snapshot(bytes(10))
    assert not length.is_too_long


def test_a_few_large_entries_are_too_long() -> None:
    length = LogLength()
    assert not added(length, 7, MIB)
    assert added(length, BYTES_PER_SNAPSHOT_MIN // MIB - 7, MIB)


def test_a_snapshot_is_paid_for_by_as_many_bytes_of_entries() -> None:
    length = LogLength()
    length.read_snapshot(bytes(2 * BYTES_PER_SNAPSHOT_MIN))
    assert not added(length, 2 * BYTES_PER_SNAPSHOT_MIN // MIB - 1, MIB)
    assert added(length, 1, MIB)


def test_no_start_reads_entries_without_number() -> None:
    length = LogLength()
    length.read_snapshot(bytes(5 * MIB))
    assert not added(length, ENTRIES_PER_SNAPSHOT_MAX - 1, 100)
    assert added(length, 1, 100)
