"""Ranges cut into tasks."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.reading.splitting import ranges_between, split

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def sizes(ranges: list[OffsetRange]) -> list[int]:
    return [each.size for each in ranges]


def test_one_task_for_each_partition_that_has_something() -> None:
    assert ranges_between({A: 1, B: 5}, {B: 5, A: 3}) == [OffsetRange(A, 1, 3)]


def test_large_ranges_are_cut_and_small_ones_stay_whole() -> None:
    ranges = [OffsetRange(A, 0, 100), OffsetRange(B, 0, 10)]
    assert sizes(split(ranges, tasks_min=6)) == [20, 20, 20, 20, 20, 10]


def test_enough_tasks_are_left_as_they_are() -> None:
    ranges = [OffsetRange(A, 0, 100), OffsetRange(B, 0, 10)]
    assert split(ranges, tasks_min=2) == ranges


def test_no_task_has_more_than_its_maximum() -> None:
    assert sizes(split([OffsetRange(A, 0, 100)], records_max=30)) == [25, 25, 25, 25]


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 10_000), max_size=6),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 3_000),
)
def test_pieces_cover_the_ranges_exactly(counts: list[int], tasks_min: int | None, records_max: int | None) -> None:
    ranges = [OffsetRange(TopicPartition("t", index), 5, 5 + count) for index, count in enumerate(counts)]
    pieces = split(ranges, tasks_min=tasks_min, records_max=records_max)
    for range_ in ranges:
        mine = [piece for piece in pieces if piece.place == range_.place]
        covered = [offset for piece in mine for offset in range(piece.start, piece.end)]
        assert covered == list(range(range_.start, range_.end))
    assert all(piece.size > 0 for piece in pieces)
    assert records_max is None or all(piece.size <= records_max for piece in pieces)
