"""Somebody who waits for a partition to change: for records to be appended, committed, or deleted by followers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from moldau.replication.partition import Partition


class Watcher(Protocol):
    def grown(self, partition: Partition, size_bytes: int) -> None:
        """That many more bytes of it are."""
        ...

    def disturbed(self) -> None:
        """Leadership, existence or the readable range changed: whoever waits must look again."""
        ...


Watchers: TypeAlias = dict[Watcher, None]
"""Those who wait, in the order in which they came: they are told in that order, which a set would not keep."""
