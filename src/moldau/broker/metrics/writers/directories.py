"""Log directories: which are offline, and how much room there is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from moldau.broker.context import Services
from moldau.core.exposition import Exposition

ROOM_S_MAX = 2.0  # for file systems to tell of their room: one that hangs takes these figures away, and no others

Room: TypeAlias = Sequence[tuple[Path, int, int]]


class DirectoriesWriter:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._asking: asyncio.Future[Room] | None = None

    async def __call__(self, out: Exposition) -> None:
        write_offline(self._services, out)
        for path, total, free in await self._room():
            labels = {"logdirectory": path}
            out.add("moldau_log_directory_total_bytes", "Bytes of a log directory's file system.", labels, total)
            out.add("moldau_log_directory_free_bytes", "Those that this broker may still write.", labels, free)

    async def _room(self) -> Room:
        """Asked in a thread, and never in a second one while the first one waits."""
        if self._asking is None:
            directories = self._services.directories
            usable = [path for path in directories.paths if path not in directories.failures]
            self._asking = asyncio.get_running_loop().run_in_executor(self._services.executor, room_of, usable)
        asking = self._asking
        done, _ = await asyncio.wait([asking], timeout=ROOM_S_MAX)
        if not done:
            return []
        if self._asking is asking:  # another collection may have waited for it, too
            self._asking = None
        return asking.result()


def write_offline(services: Services, out: Exposition) -> None:
    directories = services.directories
    offline = directories.failures
    out.add("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that failed.", {}, len(offline))
    for path in directories.paths:
        help_text = "Whether a log directory failed."
        labels = {"logdirectory": path}
        out.add("kafka_log_logmanager_logdirectoryoffline", help_text, labels, int(path in offline))


def room_of(paths: Sequence[Path]) -> Room:
    found = []
    for path in paths:
        try:
            told = os.statvfs(path)
        except OSError:  # housekeeping and appends judge a disk, not this
            continue
        found.append((path, told.f_blocks * told.f_frsize, told.f_bavail * told.f_frsize))
    return found
