"""Closing logs, several at a time."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from moldau.log.errors import LogError
from moldau.log.partition_log import PartitionLog

LOGGER = logging.getLogger(__name__)

CLOSING_THREADS = 8  # they wait for fsync, which disks do several of at a time


def close_all(logs: Iterable[PartitionLog]) -> set[str]:
    """The directories of those that could not be closed."""
    with ThreadPoolExecutor(CLOSING_THREADS, thread_name_prefix="moldau-close") as pool:
        return {os.path.dirname(log.path) for log in pool.map(_close, logs) if log is not None}


def _close(log: PartitionLog) -> PartitionLog | None:
    """The log, if it could not be closed."""
    log.on_failure = None  # it is a thread that closes, and the directory's state no longer matters
    try:
        log.close()
    except (LogError, OSError) as failure:
        LOGGER.error("%s could not be closed: %s", log.partition, failure)
        return log
    return None
