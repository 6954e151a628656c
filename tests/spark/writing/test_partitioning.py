"""Java's partition for every key."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.spark.writing.partitioning import can_choose, murmur2, rows_by_partition


def murmur2_of_one(data: bytes) -> int:
    """The algorithm as published, a byte at a time."""
    mask = 0xFFFFFFFF
    hashed = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * 0x5BD1E995 & mask
        word = (word ^ word >> 24) * 0x5BD1E995 & mask
        hashed = (hashed * 0x5BD1E995 & mask) ^ word
    if whole != len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * 0x5BD1E995 & mask
    hashed = (hashed ^ hashed >> 13) * 0x5BD1E995 & mask
    return hashed ^ hashed >> 15


@pytest.mark.parametrize(
    ("key", "java"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_that_java_computes(key: bytes, java: int) -> None:
    assert murmur2(pa.array([key], pa.binary())).tolist() == [java & 0xFFFFFFFF]


@settings(deadline=None)
@given(st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=30), st.integers(0, 5))
def test_columns_are_hashed_as_single_keys(keys: list[bytes | None], skip: int) -> None:
    column = pa.array([b"before"] * skip + keys, pa.binary()).slice(skip)
    hashes = murmur2(column).tolist()
    assert [hashed for hashed, key in zip(hashes, keys, strict=True) if key is not None] == [
        murmur2_of_one(key) for key in keys if key is not None
    ]


@settings(deadline=None)
@given(st.lists(st.none() | st.binary(max_size=8), min_size=1, max_size=50), st.integers(1, 7))
def test_every_row_has_one_partition_and_order_is_kept(keys: list[bytes | None], partitions: int) -> None:
    column = pa.array(keys, pa.binary())
    chosen: dict[int, int] = {}
    for partition, rows in rows_by_partition(column, count=len(keys), partitions=partitions):
        numbers = list(range(len(keys))) if rows is None else rows.tolist()
        assert numbers == sorted(numbers)
        chosen |= dict.fromkeys(numbers, partition)
    assert sorted(chosen) == list(range(len(keys)))
    for row, key in enumerate(keys):
        if key is not None:
            assert chosen[row] == (murmur2_of_one(key) & 0x7FFFFFFF) % partitions
    assert len({chosen[row] for row, key in enumerate(keys) if key is None}) <= 1


def test_very_long_keys_are_left_alone() -> None:
    assert can_choose(pa.array([b"x" * 512]))
    assert not can_choose(pa.array([b"x" * 513]))
