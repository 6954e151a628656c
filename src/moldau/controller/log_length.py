"""When the metadata log is long enough to be replaced by a snapshot."""

from __future__ import annotations

from moldau.core.limits import MIB

ENTRIES_PER_SNAPSHOT_MIN = 1_000  # reading that many entries at start takes milliseconds
# Or that much: a topic of 10,000 partitions is an entry of 190 KB, and ZooKeeper has all of them in memory.
BYTES_PER_SNAPSHOT_MIN = 8 * MIB
ENTRIES_PER_SNAPSHOT_MAX = 10_000  # whatever a snapshot costs: to read as many from ZooKeeper takes 5 s at a start


class LogLength:
    """What was added since the last snapshot, and what that one cost."""

    __slots__ = ("_bytes", "_snapshot_bytes", "entries")

    def __init__(self) -> None:
        self.entries = 0
        self._bytes = 0
        self._snapshot_bytes = 0

    def add(self, payload: bytes) -> None:
        self.entries += 1
        self._bytes += len(payload)

    def read_snapshot(self, payload: bytes) -> None:
        self._snapshot_bytes = len(payload)

    def took_snapshot(self, payload: bytes) -> None:
        self.entries = self._bytes = 0
        self._snapshot_bytes = len(payload)

    @property
    def is_too_long(self) -> bool:
        """When as much was added as a snapshot costs, so that all snapshots together cost no more than appends."""
        is_long = self.entries >= ENTRIES_PER_SNAPSHOT_MIN or self._bytes >= BYTES_PER_SNAPSHOT_MIN
        return is_long and (self._bytes >= self._snapshot_bytes or self.entries >= ENTRIES_PER_SNAPSHOT_MAX)
