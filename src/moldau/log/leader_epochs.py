"""Which leader wrote from which offset on: the history by which replicas find where their logs part."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED = -1


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The answer to OffsetForLeaderEpoch; both -1 when the log knows nothing of the epoch."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """Epochs and start offsets, both strictly growing."""

    __slots__ = ("entries", "latest")

    def __init__(self, entries: list[EpochStart] | None = None) -> None:
        self.entries: list[EpochStart] = []
        self.latest = UNDEFINED
        for entry in entries or ():
            self.assign(entry.epoch, entry.start_offset)

    def copy(self) -> LeaderEpochs:
        """For a change that counts only once it is in the file."""
        copied = LeaderEpochs()
        copied.entries, copied.latest = self.entries[:], self.latest
        return copied

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that an epoch begins at an offset; True when that changed anything."""
        entries = self.entries
        if entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset:
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochStart(epoch, start_offset))
        self.latest = epoch
        return True

    def end_of(self, epoch: int, log_end_offset: int, *, led_in: int = UNDEFINED) -> EpochEnd:
        """The last epoch not after this one, and where the next one begins.

        A leader's own begins at the log's end, also where a full disk kept it from being noted.
        """
        if self.latest < epoch < led_in:
            return EpochEnd(self.latest if self.entries else epoch, log_end_offset)
        if epoch == UNDEFINED or not self.entries or epoch > self.latest:
            return EpochEnd(UNDEFINED, UNDEFINED)
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        slot = bisect_right(self.entries, epoch, key=lambda entry: entry.epoch)
        following = self.entries[slot].start_offset
        return EpochEnd(self.entries[slot - 1].epoch if slot else epoch, following)

    def epoch_of(self, offset: int) -> int:
        """The epoch in which an offset was written, or -1."""
        slot = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[slot - 1].epoch if slot else UNDEFINED

    def truncate_end(self, end_offset: int) -> bool:
        """Forget epochs that begin at or after the log's new end."""
        before = len(self.entries)
        while self.entries and self.entries[-1].start_offset >= end_offset:
            self.entries.pop()
        self.latest = self.entries[-1].epoch if self.entries else UNDEFINED
        return len(self.entries) != before

    def truncate_start(self, start_offset: int) -> bool:
        """Forget epochs that ended before the log's new start; the one in which it lies begins there."""
        slot = bisect_right(self.entries, start_offset, key=lambda entry: entry.start_offset)
        if slot == 0 or (slot == 1 and self.entries[0].start_offset == start_offset):
            return False
        self.entries[:slot] = [EpochStart(self.entries[slot - 1].epoch, start_offset)]
        return True

    def clear(self) -> None:
        self.entries.clear()
        self.latest = UNDEFINED
