"""How many segments are open at once: a bounded set, from which those go that nobody used for longest.

By second chance, so that a use costs one attribute: the hand goes round the ring, spares what was used since it came by
the last time, and puts the first other segment to rest.
"""

from __future__ import annotations

import errno
import logging
import os
import resource
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from moldau.core.repeated_line import RepeatedLine
from moldau.log.files import OpenFile

if TYPE_CHECKING:
    from moldau.log.segment import Segment

LOGGER = logging.getLogger(__name__)

SEGMENTS_MAX = 16_384  # above this their indexes in memory, not descriptors, would be too many
SEGMENTS_MIN = 16
RESERVED_DESCRIPTORS = (
    96  # the store, locks, listeners, and what threads open for a moment: fsync, compaction, recovery
)
GROWTH_S = 60.0  # without a lack of descriptors, until the limit rises by a step
GROWTH_STEPS = 16
NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})


def segments_max(connections_max: int) -> int:
    """What the process limit on open files leaves for segments."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(SEGMENTS_MIN, min(SEGMENTS_MAX, soft - connections_max - RESERVED_DESCRIPTORS))


class OpenFiles:
    """The open segments of one broker. One event loop owns it, as it owns the logs."""

    __slots__ = ("_clock_s", "_grows_at_s", "_hand", "_limit_max", "_no_descriptors", "_ring", "limit")

    def __init__(self, limit: int = SEGMENTS_MAX, *, clock_s: Callable[[], float] = monotonic) -> None:
        self.limit = self._limit_max = limit
        self._clock_s = clock_s
        self._grows_at_s = 0.0
        self._ring: list[Segment] = []
        self._hand = 0
        self._no_descriptors = RepeatedLine(LOGGER, logging.WARNING)

    def __len__(self) -> int:
        return sum(segment.file is not None for segment in self._ring)

    def allow(self, limit: int) -> None:
        """So many from now on; fewer for a while after a lack of descriptors."""
        self.limit = self._limit_max = limit

    def open(self, segment: Segment, flags: int = os.O_RDWR) -> OpenFile:
        """The file of a segment that stays open; another one rests for it when too many are."""
        self.admit(segment)
        try:
            return OpenFile(segment.path, flags)
        except OSError as failure:
            if failure.errno not in NO_DESCRIPTORS:
                raise
            self.shrink()
            if not any(each is segment for each in self._ring):  # it was not awake yet, and so the first to go
                self.admit(segment)
            return OpenFile(segment.path, flags)

    def admit(self, segment: Segment) -> None:
        """A segment is about to wake: another one may have to rest for it. It counts as used from its second use on."""
        segment.is_used = False
        if len(self._ring) < self.limit or self._grows():
            self._ring.append(segment)
            return
        slot = self._next_to_rest()
        if slot is None:  # none can rest, for lack of disk perhaps: rather too many files than none for this one
            self._ring.append(segment)
        else:
            self._ring[slot] = segment

    def shrink(self) -> None:
        """The process has no descriptor left, whoever has them all: keep half of what is open."""
        before, self.limit = self.limit, max(SEGMENTS_MIN, self.limit // 2)
        self._grows_at_s = self._clock_s() + GROWTH_S
        self._no_descriptors.say(f"no descriptors left; {self.limit} segments are kept open instead of {before}")
        while len(self._ring) > self.limit and (slot := self._next_to_rest()) is not None:
            del self._ring[slot]
            self._hand = slot

    def _grows(self) -> bool:
        """Whether the limit rises: step by step, for whoever had the descriptors may have let them go."""
        if self.limit >= self._limit_max or self._clock_s() < self._grows_at_s:
            return False
        self.limit = min(self._limit_max, self.limit + max(SEGMENTS_MIN, self._limit_max // GROWTH_STEPS))
        self._grows_at_s = self._clock_s() + GROWTH_S
        return True

    def _next_to_rest(self) -> int | None:
        """The place of a segment that rests from now on; None when in two rounds none could."""
        ring = self._ring
        for _ in range(2 * len(ring)):
            self._hand = slot = self._hand % len(ring)
            self._hand += 1
            segment = ring[slot]
            if segment.file is None:
                return slot
            if segment.is_used:
                segment.is_used = False
                continue
            try:
                segment.rest()
            except OSError as failure:
                LOGGER.debug("%s can't rest: %s", segment.path, failure)
                continue
            return slot
        return None
