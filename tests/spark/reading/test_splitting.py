"""Ranges cut into tasks."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.reading.splitting import late_shares, ranges_between, split

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


LOOKS = st.lists(st.integers(0, 30), min_size=3, max_size=3)


@settings(deadline=None)
@given(LOOKS, st.lists(LOOKS, min_size=12, max_size=12), st.none() | st.integers(1, 8), st.integers(0, 10))
def test_tasks_that_look_at_different_moments_share_without_gap_or_overlap(
    planned_ends: list[int], grown: list[list[int]], tasks_min: int | None, deleted: int
) -> None:
    """Each task finds other ends, later ones too; what was there when the plan was made is read by exactly one."""
    places = [TopicPartition("t", index) for index in range(3)]
    plan = split(
        ranges_between(dict.fromkeys(places, 0), dict(zip(places, planned_ends, strict=True))), tasks_min=tasks_min
    )
    read: Counter[tuple[TopicPartition, int]] = Counter()
    for number in range(max(1, len(plan))):
        ends = {
            place: end + grown[number][at] for at, (place, end) in enumerate(zip(places, planned_ends, strict=True))
        }
        there = ranges_between(dict.fromkeys(places, deleted), ends)
        for share in late_shares(plan, there, number=number):
            assert share.range_.size > 0
            read.update((share.range_.place, offset) for offset in range(share.range_.start, share.range_.end))
    assert not [place for place, count in read.items() if count > 1]
    must = {(place, offset) for place, end in zip(places, planned_ends, strict=True) for offset in range(deleted, end)}
    assert must <= set(read)
    for place in places:
        offsets = sorted(offset for found, offset in read if found == place)
        assert offsets == list(range(deleted, deleted + len(offsets)))
