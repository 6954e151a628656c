"""One log directory: what its checkpoints said when it was opened, and whether it can be used."""

from __future__ import annotations

import contextlib
import errno
import logging
import os

from moldau.core.ids import TopicPartition
from moldau.core.repeated_line import RepeatedLine
from moldau.log.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    CorruptCheckpoint,
    read_clean_shutdown,
    read_offsets,
)
from moldau.log.directories.lock import DirectoryLock
from moldau.log.directories.meta_properties import MetaProperties
from moldau.log.directories.state import NEXT, Event, State
from moldau.log.files import write_at
from moldau.log.maintenance.removal import set_stray_aside

LOGGER = logging.getLogger(__name__)

PROBE = "moldau-room.tmp"
PROBE_BYTES = 65_536  # room for a few batches, or an append would be the next to find none
_IMMOVABLE = frozenset({errno.EBUSY, errno.EPERM, errno.EACCES})  # a mount point or a protected folder: the disk works


class LogDirectory:
    """One log directory and what its checkpoints said when it was opened."""

    __slots__ = (
        "clean", "clean_to", "failure", "folders", "high_watermarks", "lock", "meta", "passing", "path",
        "recovery_points", "starts", "state",
    )  # fmt: skip

    def __init__(self, path: str, lock: DirectoryLock, meta: MetaProperties) -> None:
        self.path = path
        self.lock = lock
        self.meta = meta
        self.state = State.ONLINE
        self.failure = ""
        self.passing = RepeatedLine(LOGGER, logging.WARNING)  # what is refused for want of descriptors, not of the disk
        self.clean = read_clean_shutdown(path)
        self.folders: set[TopicPartition] = set()
        self.recovery_points = _offsets(path, RECOVERY_POINTS)
        self.starts = _offsets(path, LOG_START_OFFSETS)
        self.high_watermarks = _offsets(path, HIGH_WATERMARKS)
        self.clean_to = _offsets(path, CLEANER_OFFSETS)

    def forget_offsets(self, partition: TopicPartition) -> None:
        """What the checkpoints said is about another partition that had this name."""
        for offsets in (self.recovery_points, self.starts, self.high_watermarks, self.clean_to):
            offsets.pop(partition, None)

    def advance(self, event: Event, failure: str = "") -> bool:
        """Go where the table of states says; True when that is another state."""
        before, self.state = self.state, NEXT[self.state, event]
        if self.state is not before or self.state is not State.OFFLINE:
            self.failure = failure
        return self.state is not before

    def has_room(self) -> bool:
        """Try it, for a quota is in no figure of the disk."""
        probe = f"{self.path}/{PROBE}"
        try:
            write_at(probe, bytes(PROBE_BYTES), 0)
        except OSError:
            return False
        finally:
            with contextlib.suppress(OSError):
                os.unlink(probe)
        return True

    def disown(self, partition: TopicPartition) -> OSError | None:
        """Set the folder of a partition aside that is no topic's; gives what the disk has against it."""
        if self.state is State.OFFLINE:
            return None
        path = f"{self.path}/{partition}"
        try:
            set_stray_aside(path, partition)
        except OSError as failure:
            if failure.errno not in _IMMOVABLE:
                return failure
            LOGGER.warning("%s belongs to no topic and can't be renamed; leaving it alone: %s", path, failure.strerror)
            return None
        self.folders.discard(partition)
        return None


def _offsets(path: str, name: str) -> dict[TopicPartition, int]:
    """What a checkpoint says; without it a start scans more than it had to, but loses nothing."""
    try:
        return read_offsets(path, name)
    except CorruptCheckpoint as wrong:
        LOGGER.warning("%s; going on without it", wrong)
        return {}
