"""How long a reader that stands still has until retention removes the first record that it has not read.

A broker deletes a segment when its newest record is older than `retention.ms`. So the first unread record stays at
least until its own time plus `retention.ms`, and that moment is what is told here: it may live longer. By size
(`retention.bytes`) nobody can tell when; there the share of the log that is unread is what counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.core.ids import TopicPartition

FOREVER = -1
UNREAD_SHARE_MAX = 0.5  # of a log that is limited by size: beyond it, its start comes closer with every record


@dataclass(frozen=True, slots=True)
class TopicRetention:
    """What of a topic's configuration decides when records go; -1 is never."""

    retention_ms: int
    retention_bytes: int
    policy: str = "delete"

    @property
    def deletes(self) -> bool:
        return "delete" in self.policy.split(",")


def topic_retention(config: Mapping[str, str]) -> TopicRetention:
    return TopicRetention(
        int(config.get("retention.ms", FOREVER)),
        int(config.get("retention.bytes", FOREVER)),
        config.get("cleanup.policy", "delete"),
    )


@dataclass(frozen=True, slots=True)
class Position:
    """Where a reader stands in one partition; the time is that of its first unread record, if it has one."""

    place: TopicPartition
    offset: int
    earliest: int
    latest: int
    first_unread_ms: int | None = None

    @property
    def unread(self) -> int:
        return max(0, self.latest - self.offset)

    @property
    def lost(self) -> int:
        return max(0, self.earliest - self.offset)


@dataclass(frozen=True, slots=True)
class Margin:
    """What is left of it: `left_ms` is None where time does not decide."""

    position: Position
    left_ms: int | None
    unread_share: float | None = None

    def is_short(self, within_ms: int) -> bool:
        if self.position.lost:
            return True
        by_size = self.unread_share is not None and self.unread_share > UNREAD_SHARE_MAX
        return by_size or (self.left_ms is not None and self.left_ms < within_ms)

    def __str__(self) -> str:
        place, unread = self.position.place, self.position.unread
        if self.position.lost:
            return f"{place}: up to {self.position.lost:,} records were removed before they were read"
        parts = []
        if self.left_ms is not None:
            parts.append(f"may go in {duration_text(self.left_ms)}" if self.left_ms > 0 else "may go at any moment")
        if self.unread_share is not None:
            parts.append(f"{self.unread_share:.0%} of a log that is limited by size is unread")
        return f"{place}: {unread:,} unread, the first {' and '.join(parts) or 'stays'}"


def margin(position: Position, retention: TopicRetention, *, now_ms: int) -> Margin:
    if not position.unread or not retention.deletes:
        return Margin(position, None)
    left_ms = None
    if retention.retention_ms != FOREVER and position.first_unread_ms is not None:
        left_ms = max(0, position.first_unread_ms + retention.retention_ms - now_ms)
    share = None
    if retention.retention_bytes != FOREVER:
        share = position.unread / max(1, position.latest - position.earliest)
    return Margin(position, left_ms, share)


def held_retention_ms(margins: list[Margin], *, within_ms: int, now_ms: int) -> int:
    """A retention under which every first unread record stays twice `within_ms` from now on."""
    times = [one.position.first_unread_ms for one in margins if one.position.unread]
    oldest_ms = min((ms for ms in times if ms is not None), default=now_ms)
    return max(0, now_ms - oldest_ms) + 2 * within_ms


def duration_text(duration_ms: int) -> str:
    """The two largest units: '3 d 4 h', '12 min'."""
    left, told = duration_ms // 1000, []
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, seconds)
        if count:
            told.append(f"{count} {unit}")
    return " ".join(told[:2]) or "less than a second"
