"""Which segments a log no longer has to keep: a decision about sizes, times and offsets that touches no file.

Segments go from the oldest on, and only below the high watermark, so that the log never starts beyond it. The newest,
active segment may be among them when all its records have expired: the caller rolls to a new one first, so that what is
deleted never is the active segment. An empty active segment stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from moldau.core.config.topic import TopicConfig


class Retained(Protocol):
    """What retention must know of a segment. The timestamp is asked for last, because it may have to be read."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    def largest_timestamp(self) -> int: ...


class Expired(NamedTuple):
    """How many of the oldest segments go, and why."""

    before_log_start: int = 0
    beyond_size: int = 0
    beyond_time: int = 0

    @property
    def total(self) -> int:
        return self.before_log_start + self.beyond_size + self.beyond_time


def expired(
    segments: Sequence[Retained],
    *,
    config: TopicConfig,
    now_ms: int,
    log_start_offset: int,
    high_watermark: int,
    end_offset: int,
) -> Expired:
    """Size and time count only when the policy says delete; what lies before the log's start goes in any case."""
    ends = [each.base_offset for each in segments[1:]]
    ends.append(end_offset)

    def run(start: int, goes: Callable[[int], bool]) -> int:
        at = start
        while at < len(segments) and high_watermark >= ends[at] and not _empty_active(segments, at) and goes(at):
            at += 1
        return at - start

    before = run(0, lambda at: at + 1 < len(segments) and ends[at] <= log_start_offset)
    if "delete" not in config.cleanup_policy:
        return Expired(before)
    by_size = 0
    if config.retention_bytes >= 0:
        spare = _running_excess(segments, start=before, retention_bytes=config.retention_bytes)
        by_size = run(before, lambda at: spare[at - before] >= 0)
    by_time = 0
    if config.retention_ms >= 0:
        by_time = run(before + by_size, lambda at: now_ms - segments[at].largest_timestamp() > config.retention_ms)
    return Expired(before, by_size, by_time)


def _empty_active(segments: Sequence[Retained], at: int) -> bool:
    return at == len(segments) - 1 and segments[at].size == 0


def _running_excess(segments: Sequence[Retained], *, start: int, retention_bytes: int) -> list[int]:
    """By how much the log would still exceed its size once the segment at each place had gone, too."""
    left = sum(each.size for each in segments[start:]) - retention_bytes
    excess = []
    for each in segments[start:]:
        left -= each.size
        excess.append(left)
    return excess
