"""The part of a batch read that a question's conditions leave: partitions, offsets, and records from a time on.

What is left out holds no record that fits. What is read may hold others: the question's own conditions still decide.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import Offsets


class TimedOffsets(Protocol):
    """What of the cluster is needed here."""

    def at_times(self, timestamps_ms: Mapping[TopicPartition, int]) -> Offsets: ...


@dataclass(frozen=True, slots=True)
class Narrowing:
    """None is no condition. `offset_end` is the first offset that is not wanted."""

    partitions: tuple[int, ...] | None = None
    offset_start: int | None = None
    offset_end: int | None = None
    since_ms: int | None = None

    def as_text(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if value is not None})

    def and_also(self, other: Narrowing) -> Narrowing:
        partitions = self.partitions if other.partitions is None else other.partitions
        if self.partitions is not None and other.partitions is not None:
            partitions = tuple(one for one in self.partitions if one in other.partitions)
        return Narrowing(
            partitions,
            _largest(self.offset_start, other.offset_start),
            _smallest(self.offset_end, other.offset_end),
            _largest(self.since_ms, other.since_ms),
        )

    def narrowed(self, start: Offsets, end: Offsets, cluster: TimedOffsets) -> tuple[Offsets, Offsets]:
        """What is left of the ranges; `end` was asked for before, so that what arrives meanwhile is left out whole."""
        start, end = dict(start), dict(end)
        for place in start:
            if self.partitions is not None and place.partition not in self.partitions:
                end[place] = start[place]
            start[place] = max(start[place], self.offset_start or 0)
            if self.offset_end is not None:
                end[place] = min(end[place], self.offset_end)
        # Below 0 are a request's own meanings of a time: the earliest, the latest.
        if self.since_ms is not None and self.since_ms >= 0:
            open_ones = [place for place in start if end[place] > start[place]]
            # All records before the first one that is as new are older. After it there may be older ones again.
            for place, offset in cluster.at_times(dict.fromkeys(open_ones, self.since_ms)).items():
                start[place] = end[place] if offset < 0 else max(start[place], offset)
        return start, end


def narrowing_from(text: str) -> Narrowing:
    told = json.loads(text)
    partitions = told.get("partitions")
    return Narrowing(
        None if partitions is None else tuple(partitions),
        told.get("offset_start"),
        told.get("offset_end"),
        told.get("since_ms"),
    )


def _largest(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _smallest(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)
