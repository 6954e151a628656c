"""A follower of one partition: what it asks its leader for, and what it makes of the answers.

A follower asks for the offset at which its log ends and says of which epoch it has records last. The leader sends what
comes next, or says where the two histories part; then the follower drops what its leader does not have (KIP-101, 279,
595) and asks again. The log is the only state, so that nothing can be out of step with it. Nothing here touches a
network, a clock or a task.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import NamedTuple

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import Offset
from moldau.log.leader_epochs import UNDEFINED, EpochEnd
from moldau.log.partition_log import PartitionLog
from moldau.replication.partition import Partition
from moldau.wire.batch import batches
from moldau.wire.messages.fetch import PartitionData

LOGGER = logging.getLogger(__name__)

NOW_MS = 0


class Position(NamedTuple):
    """Where a follower stands: the partition's part of a Fetch request."""

    leader_epoch: int
    offset: Offset
    last_epoch: int
    log_start_offset: Offset


class Outcome(Enum):
    OUTDATED = "outdated"  # an answer to a question that is no longer asked
    NOTHING = "nothing"
    APPENDED = "appended"
    TRUNCATED = "truncated"
    OUT_OF_RANGE = "out of range"  # the leader is to be asked where its log begins and ends
    REFUSED = "refused"  # try again after a while


class Follower:
    """One replica on this broker that another broker leads, in one leader epoch."""

    __slots__ = ("delayed_until_ms", "lag", "leader_epoch", "partition", "refusal", "refusals")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.delayed_until_ms = NOW_MS
        self.lag: int | None = None  # behind the leader's high watermark, as far as was heard
        self.refusal: str | None = None  # why the last answer was of no use
        self.refusals = 0  # one after the other, of answers that were of no use

    @property
    def is_current(self) -> bool:
        """Whether this broker still follows in that epoch, and can."""
        partition = self.partition
        return (
            not partition.is_leader
            and partition.leadership.leader_epoch == self.leader_epoch
            and partition.log.offline is None
        )

    @property
    def is_in_sync(self) -> bool:
        """As far as the follower knows: it has all that it heard to be committed."""
        return self.lag == 0

    def position(self) -> Position:
        log = self.partition.log
        return Position(self.leader_epoch, log.end_offset, log.epochs.latest, log.log_start_offset)

    def delay(self, until_ms: int) -> None:
        self.delayed_until_ms = until_ms

    def begin(self, *, now_ms: int) -> None:
        """Before the first question. Without any epoch to compare, only what is committed can be relied on."""
        log, high_watermark = self.partition.log, self.partition.high_watermark
        if log.epochs.latest == UNDEFINED and log.end_offset > high_watermark:
            self._say_truncated(high_watermark, "no leader epoch is known")
            try:
                self.partition.truncate_to(high_watermark, now_ms=now_ms)
            except ApiError as wrong:
                self.refused(wrong.code, str(wrong))

    def answered(self, asked: Position, data: PartitionData, *, now_ms: int) -> Outcome:
        """Take what the leader said to what was asked. Storage that fails is the log's affair, which goes offline."""
        if not self.is_current or asked.leader_epoch != self.leader_epoch:
            return Outcome.OUTDATED
        if asked.offset != self.partition.log.end_offset:
            return Outcome.OUTDATED
        try:
            return self._take(data, now_ms)
        except ApiError as wrong:
            return self.refused(wrong.code, str(wrong))

    def _take(self, data: PartitionData, now_ms: int) -> Outcome:
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return Outcome.OUT_OF_RANGE
        if data.error_code != ErrorCode.NONE:
            return self.refused(data.error_code)
        diverging = data.diverging_epoch
        if diverging.end_offset >= 0:
            self._truncate(EpochEnd(diverging.epoch, diverging.end_offset), now_ms)
            return Outcome.TRUNCATED
        self.refusal, self.refusals = None, 0
        return self._append(data, now_ms)

    def refused(self, error_code: int, reason: str | None = None) -> Outcome:
        self.refusal = reason or ErrorCode(error_code).name
        self.refusals += 1
        return Outcome.REFUSED

    def _append(self, data: PartitionData, now_ms: int) -> Outcome:
        partition, records = self.partition, data.records
        log, before = partition.log, partition.log.end_offset
        if isinstance(records, memoryview) and records:
            if log.log_start_offset == log.end_offset:
                self._begin_with(records, now_ms)
            log.append_as_follower(records, leader_epoch=self.leader_epoch, now_ms=now_ms)
        size_bytes = len(records) if records is not None else 0
        self.lag = max(0, data.high_watermark - log.end_offset)
        partition.follow_high_watermark(Offset(data.high_watermark), size_bytes)
        # Retention and DeleteRecords move a leader's start, never beyond what is committed.
        start = min(data.log_start_offset, partition.high_watermark)
        if start > log.log_start_offset:
            log.advance_log_start(Offset(start), now_ms=now_ms)
        return Outcome.APPENDED if log.end_offset > before else Outcome.NOTHING

    def _begin_with(self, records: memoryview, now_ms: int) -> None:
        """DeleteRecords lets a leader's log begin inside a batch: an empty log begins with the whole of that batch."""
        end_offset = self.partition.log.end_offset
        _, first = next(iter(batches(records, partial_tail=True)), (0, None))
        if first is not None and first.base_offset < end_offset < first.next_offset:
            self.partition.restart_at(Offset(first.base_offset), now_ms=now_ms)

    def _truncate(self, leader: EpochEnd, now_ms: int) -> None:
        partition = self.partition
        offset = truncation_offset(partition.log, leader)
        self._say_truncated(offset, f"leader epoch {leader.epoch} ends at {leader.end_offset}")
        partition.truncate_to(offset, now_ms=now_ms)

    def _say_truncated(self, offset: Offset, reason: str) -> None:
        partition = self.partition
        if offset >= partition.log.end_offset:
            return
        level = logging.WARNING if offset < partition.high_watermark else logging.INFO
        LOGGER.log(
            level, "%s: truncating from %d to %d, with %d committed: %s", partition.log.partition,
            partition.log.end_offset, offset, partition.high_watermark, reason,
        )  # fmt: skip

    def told_range(self, start_offset: int, end_offset: int, *, now_ms: int) -> Outcome:
        """What the leader has, after it refused an offset: go back to its end, or begin anew where it begins.

        A leader that ends before its follower was elected although it lacks records; one that begins after the end of
        its follower has deleted what the follower lacks.
        """
        if not self.is_current:
            return Outcome.OUTDATED
        partition = self.partition
        log, start, end = partition.log, Offset(start_offset), Offset(end_offset)
        try:
            if end < log.end_offset:
                self._say_truncated(end, "the leader's log ends there")
                partition.truncate_to(end, now_ms=now_ms)
            elif start > log.end_offset:
                LOGGER.warning("%s: begins anew at %d, for it ended at %d", log.partition, start, log.end_offset)
                partition.restart_at(start, now_ms=now_ms)
            else:  # it has what it refused, as one that just leads may; the next question must not follow at once
                return self.refused(ErrorCode.OFFSET_OUT_OF_RANGE)
        except ApiError as wrong:
            return self.refused(wrong.code, str(wrong))
        return Outcome.TRUNCATED


def truncation_offset(log: PartitionLog, leader: EpochEnd) -> Offset:
    """Where a follower goes back to when its leader's history has another epoch, or a shorter one, than its own.

    If the follower does not know the epoch that the leader named, it goes back to the end of the one before, which the
    leader may not have either: then it is told so at the next fetch.
    """
    epoch, end = log.epoch_end(leader.epoch)
    if end == UNDEFINED:
        return Offset(min(leader.end_offset, log.end_offset))
    if epoch != leader.epoch:
        return Offset(min(end, log.end_offset))
    return Offset(min(end, leader.end_offset, log.end_offset))
