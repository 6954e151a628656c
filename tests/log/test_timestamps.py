"""Finding records by time, whatever order their times are in."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.ids import Offset
from moldau.log.partition_log import PartitionLog
from moldau.log.timestamps import TimestampedOffset
from moldau.wire.batch import Codec
from tests.log.samples import NOW_MS, batch, config, create, reopen

# Two segments and a half, with times that go up and down within and between batches.
TIMES = [[10, 30, 20], [5], [40, 40], [35], [60, 50], [45], [90], [70, 80]]


def fill(folder: Path, codec: Codec = Codec.NONE) -> PartitionLog:
    log = create(folder, config(segment_bytes=400, index_interval_bytes=100))
    for times in TIMES:
        sent = batch([b"x" * 40] * len(times), timestamps=[NOW_MS + time for time in times], codec=codec)
        log.append_as_leader(sent, leader_epoch=2, now_ms=NOW_MS)
    return log


@pytest.mark.parametrize("codec", list(Codec))
def test_the_first_record_not_earlier_than_a_time_is_found(tmp_path: Path, codec: Codec) -> None:
    log = fill(tmp_path, codec)
    flat = [(offset, time) for offset, time in enumerate(time for times in TIMES for time in times)]
    for wanted in range(0, 95, 5):
        found = log.offset_for_timestamp(NOW_MS + wanted)
        expected = next(((offset, time) for offset, time in flat if time >= wanted), None)
        assert (found and (found.offset, found.timestamp_ms - NOW_MS)) == expected
    assert log.offset_for_timestamp(NOW_MS + 91) is None


def test_records_before_the_logs_start_are_not_found(tmp_path: Path) -> None:
    log = fill(tmp_path)
    log.advance_log_start(Offset(2))
    assert log.offset_for_timestamp(0) == TimestampedOffset(NOW_MS + 20, 2, 2)


def test_the_largest_timestamp_is_that_of_one_record(tmp_path: Path) -> None:
    log = fill(tmp_path)
    assert log.max_timestamp() == TimestampedOffset(NOW_MS + 90, 10, 2)
    log.close()
    used = config(segment_bytes=400, index_interval_bytes=100)
    assert reopen(tmp_path, used).max_timestamp() == TimestampedOffset(NOW_MS + 90, 10, 2)


def test_an_empty_log_has_none(tmp_path: Path) -> None:
    log = create(tmp_path)
    assert (log.max_timestamp(), log.offset_for_timestamp(0)) == (None, None)
