"""Records that are not in the page cache: a thread fetches them from the disk before `sendfile` would wait for it.

Whoever reads near the end of a log finds in the cache what was just written, so nothing is looked at there.
"""

from __future__ import annotations

import os
from asyncio import get_running_loop
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from moldau.broker.requests.delayed_response import DelayedResponse
from moldau.core.limits import KIB, MIB
from moldau.log.file_range import FileRange
from moldau.replication.partition import Partition

R = TypeVar("R")

THREADS = 4  # they wait for the disk; those of fsync are others, which must not wait behind readers
NEAR_BYTES = 64 * MIB  # so close to the end of the active segment records are taken to be in the cache
STRIDE_BYTES = 512 * KIB  # what leaves the cache leaves it in long runs; to miss a short one costs one read of the disk


def may_be_cold(partition: Partition, records: FileRange) -> bool:
    active = partition.log.active
    return records.owner is not active.file or active.size - records.position > NEAR_BYTES


def is_cold(records: FileRange) -> bool:
    """Whether any of it has to come from the disk, by looking at a byte here and there."""
    byte = (bytearray(1),)
    end = records.position + records.size
    try:
        for position in range(records.position, end, STRIDE_BYTES):
            os.preadv(records.fd, byte, position, os.RWF_NOWAIT)
        os.preadv(records.fd, byte, end - 1, os.RWF_NOWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False  # this file system can't tell
    return False


def warm(ranges: Sequence[FileRange]) -> None:
    """Bring all of it into the page cache; may run in any thread. A disk that fails is for `sendfile` to report."""
    scratch = (bytearray(256 * KIB),)
    for records in ranges:
        try:
            os.posix_fadvise(records.fd, records.position, records.size, os.POSIX_FADV_WILLNEED)
            for position in range(records.position, records.position + records.size, len(scratch[0])):
                os.preadv(records.fd, scratch, position)
        except OSError:
            return


class ColdReads:
    def __init__(self) -> None:
        self._executor: Executor = ThreadPoolExecutor(THREADS, thread_name_prefix="moldau-reads")

    def close(self) -> None:
        self._executor.shutdown()

    def response(self, response: R, found: Iterable[tuple[Partition | None, FileRange]]) -> R | DelayedResponse[R]:
        """The response at once, or when the records of these partitions are in the page cache."""
        cold = [
            records
            for partition, records in found
            if partition is not None and records.size and may_be_cold(partition, records) and is_cold(records)
        ]
        if not cold:
            return response
        loop = get_running_loop()
        later: DelayedResponse[R] = DelayedResponse()
        work = loop.run_in_executor(self._executor, warm, cold)
        work.add_done_callback(partial(_warmed, later, response))
        return later


def _warmed(later: DelayedResponse[R], response: R, _: object) -> None:
    later.set_result(response)
