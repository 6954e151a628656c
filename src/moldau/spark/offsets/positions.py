"""Where a read begins and ends, in offsets: what the user said, resolved against what the cluster has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTimestamp,
    Bound,
    Everywhere,
    Offsets,
    check_covers,
)
from moldau.spark.option_values import OptionError


class OffsetSource(Protocol):
    """What of the cluster is needed here."""

    def earliest(self, places: Collection[TopicPartition]) -> Offsets: ...
    def latest(self, places: Collection[TopicPartition]) -> Offsets: ...
    def at_times(self, timestamps_ms: Mapping[TopicPartition, int]) -> Offsets: ...


def start_offsets(
    bound: Bound, places: Collection[TopicPartition], cluster: OffsetSource, *, latest_if_no_timestamp: bool
) -> Offsets:
    resolved, without_record = _resolve(bound, places, cluster, option="startingOffsets")
    if without_record and not latest_if_no_timestamp:
        raise OptionError(
            f"no record is as new as the starting timestamp in {', '.join(map(str, sorted(without_record)))}; "
            "startingOffsetsByTimestampStrategy = latest starts there at the end instead"
        )
    return resolved | cluster.latest(without_record)


def end_offsets(bound: Bound, places: Collection[TopicPartition], cluster: OffsetSource) -> Offsets:
    """A time that no record has reached yet means all there is."""
    resolved, without_record = _resolve(bound, places, cluster, option="endingOffsets")
    return resolved | cluster.latest(without_record)


def _resolve(
    bound: Bound, places: Collection[TopicPartition], cluster: OffsetSource, *, option: str
) -> tuple[Offsets, set[TopicPartition]]:
    """Offsets, and the partitions that have no record for the time that was given."""
    if isinstance(bound, Everywhere):
        return (cluster.earliest(places) if bound.offset == EARLIEST else cluster.latest(places)), set()
    if isinstance(bound, AtOffsets):
        _check(bound.offsets, places, option)
        return _named_offsets(bound.offsets, cluster), set()
    if isinstance(bound, AtTimestamp):
        timestamps_ms = dict.fromkeys(places, bound.timestamp_ms)
    else:
        _check(bound.timestamps_ms, places, f"{option}ByTimestamp")
        timestamps_ms = dict(bound.timestamps_ms)
    found = cluster.at_times(timestamps_ms)
    without_record = {place for place, offset in found.items() if offset < 0}
    return {place: offset for place, offset in found.items() if offset >= 0}, without_record


def _named_offsets(offsets: Mapping[TopicPartition, int], cluster: OffsetSource) -> Offsets:
    earliest = cluster.earliest([place for place, offset in offsets.items() if offset == EARLIEST])
    latest = cluster.latest([place for place, offset in offsets.items() if offset == LATEST])
    return dict(offsets) | earliest | latest


def _check(given: Mapping[TopicPartition, int], places: Collection[TopicPartition], option: str) -> None:
    problem = check_covers(given, places)
    if problem:
        raise OptionError(f"option {option}: {problem}")
