"""Whatever is done to a log, it reads like a list to which the same was done."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.log.errors import LogError
from moldau.log.partition_log import PartitionLog
from tests.log.samples import NOW_MS, batch, config, contents, create, reopen

SMALL = config(segment_bytes=700, index_interval_bytes=100, segment_index_bytes=60)


class Log(RuleBasedStateMachine):
    """`batches` are the batches of the list: first offset and values."""

    log: PartitionLog

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="moldau-log-"))
        self.log = create(self.folder, SMALL)
        self.batches: list[tuple[int, list[bytes], int]] = []
        self.start = 0
        self.count = 0
        self.producer_id = 7
        self.sequence = 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def end(self) -> int:
        return self.batches[-1][0] + len(self.batches[-1][1]) if self.batches else self.floor

    floor = 0

    @rule(sizes=st.lists(st.integers(0, 150), min_size=1, max_size=4), late_ms=st.integers(0, 50))
    def append(self, sizes: list[int], late_ms: int) -> None:
        self.count += 1
        values = [b"%d " % self.count + b"x" * size for size in sizes]
        timestamp = NOW_MS + self.count * 10 - late_ms
        appended = self.log.append_as_leader(
            batch(values, timestamps=[timestamp] * len(values)), leader_epoch=0, now_ms=NOW_MS + self.count * 10
        )
        assert (appended.first_offset, appended.last_offset) == (self.end, self.end + len(values) - 1)
        self.batches.append((self.end, values, timestamp))

    @rule()
    def append_and_retry(self) -> None:
        sent = batch([b"once"], timestamps=[NOW_MS], producer=(self.producer_id, 0, self.sequence))
        retried = memoryview(bytearray(sent))
        first = self.log.append_as_leader(sent, leader_epoch=0, now_ms=NOW_MS)
        second = self.log.append_as_leader(retried, leader_epoch=0, now_ms=NOW_MS)
        assert (second.first_offset, second.duplicate) == (first.first_offset, True)
        self.batches.append((self.end, [b"once"], NOW_MS))
        self.sequence += 1

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def rest(self) -> None:
        self.log.rest()

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self.log = reopen(self.folder, SMALL, recovery_point=self.end, log_start_offset=self.start)

    @rule()
    def crash_and_start(self) -> None:
        self.log = reopen(
            self.folder, SMALL, clean=False, recovery_point=self.log.recovery_point, log_start_offset=self.start
        )

    @rule(data=st.data())
    @precondition(lambda self: self.batches)
    def truncate(self, data: st.DataObject) -> None:
        keep = data.draw(st.integers(0, len(self.batches) - 1))
        offset = self.batches[keep][0]
        self.log.truncate_to(Offset(offset), now_ms=NOW_MS)
        del self.batches[keep:]
        self.floor = offset if not self.batches else self.floor
        self.start = min(self.start, offset)
        self.producer_id += 1  # what the log remembers of the one before depends on how much was truncated
        self.sequence = 0

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.log.advance_log_start(Offset(offset), now_ms=NOW_MS)
        self.start = offset

    @rule(data=st.data())
    @precondition(lambda self: self.batches)
    def find_by_time(self, data: st.DataObject) -> None:
        wanted = data.draw(st.integers(NOW_MS - 60, NOW_MS + self.count * 10 + 5))
        readable = [
            (timestamp, max(first, self.start))
            for first, values, timestamp in self.batches
            if first + len(values) > self.start and timestamp >= wanted
        ]
        found = self.log.offset_for_timestamp(wanted)
        assert (found and (found.timestamp_ms, found.offset)) == (readable[0] if readable else None)

    @invariant()
    def reads_as_the_list(self) -> None:
        expected = [
            (first + delta, value)
            for first, values, _ in self.batches
            for delta, value in enumerate(values)
            if first + delta >= self.start
        ]
        assert (self.log.log_start_offset, self.log.end_offset) == (self.start, self.end)
        assert contents(self.log, bytes_max=300) == expected
        assert contents(self.log, start=self.log.end_offset) == []

    @invariant()
    def refuses_what_it_lacks(self) -> None:
        with pytest.raises(LogError) as refused:
            self.log.read(Offset(self.end + 1), bytes_max=1, end=Offset(self.end), one_batch=True)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


TestLog = Log.TestCase
TestLog.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
