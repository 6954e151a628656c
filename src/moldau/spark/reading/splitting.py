"""Ranges of offsets cut into tasks: one for each partition, or more where the user asks for them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import OffsetRange


def ranges_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """What there is to read, in a fixed order: the number of a task is part of what makes a batch exactly once."""
    return [
        OffsetRange(place, start[place], end[place])
        for place in sorted(end)
        if place in start and end[place] > start[place]
    ]


def split(
    ranges: Sequence[OffsetRange], *, tasks_min: int | None = None, records_max: int | None = None
) -> list[OffsetRange]:
    """No task with more than `records_max` offsets, then about `tasks_min` tasks in proportion to size."""
    parts = [range_ for range_ in ranges if range_.size > 0]
    if records_max is not None:
        parts = [part for range_ in parts for part in _cut(range_, math.ceil(range_.size / records_max))]
    if tasks_min is None or len(parts) >= tasks_min:
        return parts
    counts = _part_counts([part.size for part in parts], tasks_min)
    return [piece for part, count in zip(parts, counts, strict=True) for piece in _cut(part, count)]


@dataclass(frozen=True, slots=True)
class Share:
    """What one task reads of a partition; `split` numbers the tasks that share it."""

    range_: OffsetRange
    split: int


def late_shares(planned: Sequence[OffsetRange], there: Sequence[OffsetRange], *, number: int) -> list[Share]:
    """What the task of that number reads of the ranges that are there by now.

    Tasks look at different moments, so nothing but the plan may decide who reads an offset: its first piece of a
    partition reaches back to the partition's start, its last one to the end, and a partition that it lacks, because
    that was empty or did not exist, belongs as a whole to the task that its name is hashed to.
    """
    shares = []
    for range_ in there:
        pieces = [(at, piece) for at, piece in enumerate(planned) if piece.place == range_.place]
        if not pieces:
            owner = zlib.crc32(f"{range_.place.topic}/{range_.place.partition}".encode()) % max(1, len(planned))
            pieces = [(owner, range_)]
        for split_number, (at, piece) in enumerate(pieces):
            low = range_.start if split_number == 0 else max(range_.start, piece.start)
            high = range_.end if split_number == len(pieces) - 1 else min(range_.end, piece.end)
            if at == number and low < high:
                shares.append(Share(OffsetRange(range_.place, low, high), split_number))
    return shares


def _part_counts(sizes: Sequence[int], tasks_min: int) -> list[int]:
    """Small ranges stay whole, and what they hold does not count when the large ones share the remaining tasks."""
    if not sizes:
        return []
    total = sum(sizes)
    whole = [_rounded_share(size, total, tasks_min) == 1 for size in sizes]
    large_total = sum(size for size, is_whole in zip(sizes, whole, strict=True) if not is_whole)
    large_tasks = max(tasks_min - sum(whole), 1)
    return [
        1 if is_whole else _rounded_share(size, large_total, large_tasks)
        for size, is_whole in zip(sizes, whole, strict=True)
    ]


def _rounded_share(size: int, total: int, tasks: int) -> int:
    # Half is rounded up here, unlike by `round`.
    return max(1, math.floor(size / total * tasks + 0.5))


def _cut(range_: OffsetRange, count: int) -> list[OffsetRange]:
    """`count` pieces whose sizes differ by at most one; fewer when there are fewer offsets."""
    count = min(count, range_.size)
    edges = [range_.start + range_.size * index // count for index in range(count + 1)]
    return [OffsetRange(range_.place, low, high) for low, high in pairwise(edges)]
