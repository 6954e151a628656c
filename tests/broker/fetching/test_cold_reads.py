"""Records that the page cache has are sent at once; others after a thread has fetched them."""

from __future__ import annotations

import os
from asyncio import Future, get_running_loop
from pathlib import Path

import pytest

from moldau.broker.fetching.cold_reads import STRIDE_BYTES, ColdReads, is_cold, may_be_cold, warm
from moldau.broker.requests.delayed_response import DelayedResponse
from moldau.log.file_range import FileRange
from moldau.log.files import OpenFile
from tests.coordinator.loops import on_a_loop
from tests.coordinator.partitions import new_partition

SIZE_BYTES = 8 * STRIDE_BYTES


def forget(file: OpenFile) -> None:
    os.fsync(file.fd)
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.fixture
def stored(tmp_path: Path) -> FileRange:
    path = tmp_path / "records"
    path.write_bytes(os.urandom(SIZE_BYTES))
    file = OpenFile(str(path), os.O_RDWR)
    forget(file)
    if not is_cold(FileRange(file.fd, 0, SIZE_BYTES, file)):
        pytest.skip("this file system keeps everything in memory")
    return FileRange(file.fd, 0, SIZE_BYTES, file)


def test_what_a_thread_has_fetched_is_warm(stored: FileRange) -> None:
    warm([stored])
    assert not is_cold(stored)


def test_a_range_of_which_the_end_is_missing_is_cold(stored: FileRange) -> None:
    os.posix_fadvise(stored.fd, 0, 0, os.POSIX_FADV_RANDOM)  # else the kernel may read ahead, to the end
    os.pread(stored.fd, 1, 0)
    assert is_cold(stored)


def test_near_the_end_of_the_log_nobody_looks(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    file = partition.log.active.wake()
    assert not may_be_cold(partition, FileRange(file.fd, 0, 10, file))
    partition.log.active.size = 1 << 30
    assert may_be_cold(partition, FileRange(file.fd, 0, 10, file))
    rolled = OpenFile(partition.log.active.path, os.O_RDONLY)
    assert may_be_cold(partition, FileRange(rolled.fd, 0, 10, rolled))


@on_a_loop
async def test_a_response_waits_until_its_records_are_in_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "records"
    path.write_bytes(os.urandom(SIZE_BYTES))
    file = OpenFile(str(path), os.O_RDWR)
    records = FileRange(file.fd, 0, SIZE_BYTES, file)
    partition = new_partition(tmp_path)
    reads = ColdReads()
    assert reads.response("warm", [(partition, records), (None, records)]) == "warm"
    forget(file)
    if not is_cold(records):
        pytest.skip("this file system keeps everything in memory")
    answer = reads.response("cold", [(partition, records)])
    assert isinstance(answer, DelayedResponse)
    done: Future[str | None] = get_running_loop().create_future()
    answer.add_done_callback(lambda later: done.set_result(later.result()))
    assert await done == "cold"
    assert not is_cold(records)
    reads.close()
