"""Burrow's rules: what a window of commits says about a consumer. Pure functions that take the time.

A partition is looked at only while its lag is above the allowed one, and then

    1. STOP    the last commit is longer ago than the window is long, and no recent end of the log shows it caught up
    2. REWIND  an offset is before the one it follows, and no later one reached that again
    3. OK      the lag was within the allowed one at some commit of the window
    4. STALL   all commits are of the same offset
    5. WARN    the lag never went down from one commit to the next
    6. OK      else
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import pairwise

import msgspec

WHOLE = 1.0


class Status(IntEnum):
    """From best to worst. ERR is of groups only; STOP, STALL and REWIND are of partitions only."""

    NOTFOUND = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6


class Commit(msgspec.Struct, frozen=True, gc=False):
    offset: int
    timestamp_ms: int
    lag: int | None = None
    """As it was when the commit was seen; None if that is not known."""
    observed_ms: int = 0


class PartitionVerdict(msgspec.Struct, frozen=True, gc=False):
    topic: str
    partition: int
    status: Status = Status.OK
    start: Commit | None = None
    end: Commit | None = None
    current_lag: int = 0
    complete: float = 0.0
    """How full the window of commits is."""
    owner: str = ""
    client_id: str = ""
    lag_seconds: float | None = None
    """How long the first unread record has been waiting; None if that can't be known."""


class GroupVerdict(msgspec.Struct, frozen=True, gc=False):
    cluster: str
    group: str
    status: Status
    complete: float
    """The share of partitions with a full window."""
    partitions: tuple[PartitionVerdict, ...]
    maxlag: PartitionVerdict | None
    totallag: int

    @property
    def lag_seconds(self) -> float | None:
        """The longest wait of any partition."""
        return max((each.lag_seconds for each in self.partitions if each.lag_seconds is not None), default=None)

    @property
    def in_trouble(self) -> tuple[PartitionVerdict, ...]:
        return tuple(each for each in self.partitions if each.status > Status.OK)


def partition_status(
    commits: Sequence[Commit], ends: Sequence[int], *, current_lag: int, now_ms: int, allowed_lag: int = 0
) -> Status:
    """`commits` from the oldest on, at least one; `ends` are the recent ends of the log, in any order."""
    if current_lag <= allowed_lag:
        return Status.OK
    if has_stopped(commits, now_ms) and not was_caught_up(commits[-1].offset, ends):
        return Status.STOP
    if has_rewound(commits):
        return Status.REWIND
    if any(each.lag is not None and each.lag <= allowed_lag for each in commits):
        return Status.OK
    if all(each.offset == commits[0].offset for each in commits):
        return Status.STALL
    return Status.OK if has_gained(commits) else Status.WARN


def has_stopped(commits: Sequence[Commit], now_ms: int) -> bool:
    """Burrow's clock has whole seconds."""
    last_ms = commits[-1].timestamp_ms
    return now_ms // 1_000 * 1_000 - last_ms > last_ms - commits[0].timestamp_ms


def was_caught_up(offset: int, ends: Iterable[int]) -> bool:
    """A consumer that had read all there was minutes ago has not stopped yet."""
    return any(end <= offset for end in ends)


def has_rewound(commits: Sequence[Commit]) -> bool:
    """Only the first step back counts: Burrow does not look for another one after that was made good."""
    for at, (before, after) in enumerate(pairwise(commits), 1):
        if after.offset < before.offset:
            return all(each.offset < before.offset for each in commits[at:])
    return False


def has_gained(commits: Sequence[Commit]) -> bool:
    known = [each.lag for each in commits if each.lag is not None]
    return any(after < before for before, after in pairwise(known))


def group_status(partitions: Iterable[PartitionVerdict]) -> Status:
    return min(Status.ERR, max((each.status for each in partitions), default=Status.OK))


def group_verdict(cluster: str, group: str, partitions: Sequence[PartitionVerdict]) -> GroupVerdict:
    full = sum(each.complete == WHOLE for each in partitions)
    return GroupVerdict(
        cluster,
        group,
        status=group_status(partitions),
        complete=full / len(partitions) if partitions else 0.0,
        partitions=tuple(partitions),
        # The first one of those that lag most.
        maxlag=max(partitions, key=lambda each: each.current_lag, default=None),
        totallag=sum(each.current_lag for each in partitions),
    )
