"""Log directories: which are offline, and how much room there is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from moldau.broker.context import Services
from moldau.core.exposition import Exposition


async def write_directories(services: Services, out: Exposition) -> None:
    directories = services.directories
    offline = directories.failures
    out.add("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that failed.", {}, len(offline))
    for path in directories.paths:
        help_text = "Whether a log directory failed."
        labels = {"logdirectory": path}
        out.add("kafka_log_logmanager_logdirectoryoffline", help_text, labels, int(path in offline))
    # Asking a file system may take long where it is somebody else's.
    usable = [path for path in directories.paths if path not in offline]
    room = await asyncio.get_running_loop().run_in_executor(services.executor, _room, usable)
    for path, total, free in room:
        labels = {"logdirectory": path}
        out.add("moldau_log_directory_total_bytes", "Bytes of a log directory's file system.", labels, total)
        out.add("moldau_log_directory_free_bytes", "Those that this broker may still write.", labels, free)


def _room(paths: Sequence[Path]) -> list[tuple[Path, int, int]]:
    found = []
    for path in paths:
        try:
            told = os.statvfs(path)
        except OSError:  # housekeeping and appends judge a disk, not this
            continue
        found.append((path, told.f_blocks * told.f_frsize, told.f_bavail * told.f_frsize))
    return found
