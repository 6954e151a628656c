"""What an fsync has to cover. Deciding that belongs to the log's loop; doing it may be left to a thread."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from moldau.core.ids import Offset
from moldau.log.files import OFFSET_INDEX, SNAPSHOT, TIME_INDEX, TRANSACTION_INDEX, offset_name, sync_path
from moldau.log.segment import Segment


class FlushPoint(NamedTuple):
    """What must be on the disk before everything below `offset` is safe."""

    offset: Offset
    paths: tuple[str, ...]
    truncations: int
    """How many the log had been through then."""

    def sync(self) -> None:
        """May run in any thread: it works with names alone."""
        for path in self.paths:
            sync_path(path)


def paths_to_sync(directory: str, segments: Sequence[Segment], *, recovery_point: int, rolled_only: bool) -> list[str]:
    """The files with anything above the recovery point.

    The active segment's indexes need no sync: a recovery that begins in a segment indexes all of it anew.
    """
    active = segments[-1]
    paths: list[str] = []
    for segment, following in pairwise(segments):
        if following.base_offset >= recovery_point:  # flushed while active, its indexes were left out
            prefix = segment.prefix
            paths += [segment.path, prefix + OFFSET_INDEX, prefix + TIME_INDEX, prefix + TRANSACTION_INDEX]
            paths.append(f"{directory}/{offset_name(following.base_offset)}{SNAPSHOT}")
    if not rolled_only:
        paths.append(active.path)
    if recovery_point <= active.base_offset:  # the folder does not surely know the active segment's name yet
        paths.append(directory)
    return paths
