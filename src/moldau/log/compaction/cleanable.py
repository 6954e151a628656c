"""What of a compacted log is to be cleaned: a decision about offsets, sizes and times that touches no file.

A log is clean up to its first dirty offset, which a checkpoint keeps. From there a round of cleaning reads as far as it
may, remembers the latest offset of every key, and rewrites all segments up to that point without the older records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

from moldau.core.config.topic import TopicConfig
from moldau.log.indexes.offset_index import RELATIVE_OFFSET_MAX


class Cleanable(Protocol):
    """What compaction must know of a segment. The timestamps are asked for last, because they may have to be read."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    def largest_timestamp(self) -> int: ...

    def load_first_timestamp(self) -> int: ...


AnySegment = TypeVar("AnySegment", bound=Cleanable)


class Extent(NamedTuple):
    """The offsets that a log has, of which everything below `last_stable_offset` is settled for good."""

    log_start_offset: int
    last_stable_offset: int
    end_offset: int


class Dirt(NamedTuple):
    """Which offsets a round would look at, and how much there is of them."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def is_worthwhile(dirt: Dirt, config: TopicConfig) -> bool:
    """Whether enough is dirty, or something has waited for longer than it may."""
    return dirt.dirty_bytes > 0 and (dirt.is_overdue or dirt.ratio > config.min_cleanable_dirty_ratio)


def measure(
    segments: Sequence[Cleanable], *, config: TopicConfig, checkpoint: int | None, extent: Extent, now_ms: int
) -> Dirt:
    """Never includes the active segment, what is not settled yet, nor what is younger than `min.compaction.lag.ms`."""
    first_dirty = _first_dirty_offset(checkpoint, extent)
    rolled = segments[:-1]
    dirty = rolled[_floor(rolled, first_dirty) :] if first_dirty < segments[-1].base_offset else rolled[:0]
    stop = min(extent.last_stable_offset, segments[-1].base_offset)
    lag_ms = max(config.min_compaction_lag_ms, 0)
    if lag_ms > 0:
        young = (each.base_offset for each in dirty if each.largest_timestamp() > now_ms - lag_ms)
        stop = min(stop, next(young, stop))
    stop = max(stop, first_dirty)
    beyond = segments[_floor(segments, stop)].base_offset
    return Dirt(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=beyond,
        clean_bytes=sum(each.size for each in segments if each.base_offset < first_dirty),
        dirty_bytes=sum(each.size for each in dirty if each.base_offset < beyond),
        is_overdue=_is_overdue(dirty, now_ms - max(config.max_compaction_lag_ms, 0)),
    )


def _first_dirty_offset(checkpoint: int | None, extent: Extent) -> int:
    """A checkpoint outside the log is of no use: records were deleted, or the end was lost."""
    if checkpoint is None or not extent.log_start_offset <= checkpoint <= extent.end_offset:
        return extent.log_start_offset
    return checkpoint


def _is_overdue(dirty: Sequence[Cleanable], oldest_allowed_ms: int) -> bool:
    if oldest_allowed_ms <= 0:
        return False
    return any(0 < each.load_first_timestamp() < oldest_allowed_ms for each in dirty)


def _floor(segments: Sequence[Cleanable], offset: int) -> int:
    """The place of the segment that holds an offset, which is the first one for an offset before them all."""
    place = 0
    for index, each in enumerate(segments):
        if each.base_offset > offset:
            break
        place = index
    return place


def group(
    segments: Sequence[AnySegment], *, end_offset: int, segment_bytes: int, first_uncleanable_offset: int
) -> list[list[AnySegment]]:
    """Neighbours that fit into one segment together, so that cleaning does not leave ever more and smaller ones."""
    chosen = [each for each in segments if each.base_offset < end_offset]
    ends = [each.base_offset for each in chosen[1:]]
    ends.append(first_uncleanable_offset)
    groups: list[list[AnySegment]] = []
    size = 0
    for each, end in zip(chosen, ends, strict=True):
        fits = groups and size + each.size <= segment_bytes
        if fits and (each.size == 0 or end - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX):
            groups[-1].append(each)
            size += each.size
        else:
            groups.append([each])
            size = each.size
    return groups
