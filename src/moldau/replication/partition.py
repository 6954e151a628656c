"""One partition on this broker: who leads it, what is committed, and who waits for it to grow.

The rules are pure: they read and change this object alone. The log below does the storing.
"""

from __future__ import annotations

import contextlib
from functools import lru_cache
from typing import NamedTuple, Protocol

from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, NO_PARTITION_LEADER_EPOCH, Offset
from moldau.core.topic_names import is_internal
from moldau.log.appending.validation import Validated
from moldau.log.errors import LogError
from moldau.log.file_range import FileRange
from moldau.log.leader_epochs import EpochEnd
from moldau.log.partition_log import Appended, PartitionLog
from moldau.log.producers.producer_state import Origin


class Watcher(Protocol):
    """Somebody who waits for a partition to change."""

    def grown(self, partition: Partition, size_bytes: int) -> None:
        """That many more bytes of it can be read."""
        ...

    def disturbed(self) -> None:
        """Leadership, existence or the readable range changed: whoever waits must look again."""
        ...


class LeaderAndEpoch(NamedTuple):
    leader_id: int
    leader_epoch: int


@lru_cache
def _led_by_nobody(leader_epoch: int) -> LeaderAndEpoch:
    """The same object for all partitions of a topic that is deleted, of which there may be tens of thousands."""
    return LeaderAndEpoch(NO_LEADER, leader_epoch)


class Partition:
    """A replica of one partition, led by this broker or not."""

    __slots__ = (
        "broker_id",
        "high_watermark",
        "index",
        "is_internal",
        "is_leader",
        "leadership",
        "log",
        "topic",
        "topic_id",
        "watchers",
    )

    def __init__(
        self, topic: str, index: int, *, topic_id: bytes, log: PartitionLog, broker_id: int, leadership: LeaderAndEpoch
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.is_internal = is_internal(topic)
        self.log = log
        self.broker_id = broker_id
        self.leadership = leadership
        self.is_leader = leadership.leader_id == broker_id and log.offline is None
        self.high_watermark = Offset(0)
        self._advance_high_watermark(log.end_offset)
        self.watchers: set[Watcher] = set()
        self._begin_epoch()

    @property
    def leader_epoch(self) -> int:
        return self.leadership.leader_epoch

    @property
    def last_stable_offset(self) -> Offset:
        """Below it every transaction is decided."""
        unstable = self.log.producers.first_unstable_offset()
        return self.high_watermark if unstable is None else min(Offset(unstable), self.high_watermark)

    def _advance_high_watermark(self, offset: Offset) -> None:
        """The only place where it moves: everything below is committed, and a transaction that ended there decided."""
        self.high_watermark = offset
        producers = self.log.producers
        if producers.unreplicated:
            producers.replicated_to(offset)

    @property
    def refusal(self) -> ErrorCode:
        """Why this broker does not serve a partition that it does not lead."""
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if self.log.offline is None else ErrorCode.KAFKA_STORAGE_ERROR

    def go_offline(self) -> None:
        """The log can't be used any more: nobody is served, and whoever waits is told."""
        self.is_leader = False
        self.disturb()

    def check_leader(self, current_leader_epoch: int) -> ErrorCode:
        """What to tell a client that believes in `current_leader_epoch` (-1: in none)."""
        if not self.is_leader and self.log.offline is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if current_leader_epoch not in (NO_PARTITION_LEADER_EPOCH, self.leadership.leader_epoch):
            if current_leader_epoch < self.leadership.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def append(
        self, records: memoryview, *, now_ms: int, verified: bool = False, checked: Validated | None = None
    ) -> Appended:
        """Append a client's batches as the leader; raises LogError and changes nothing if they can't be.

        `verified` says that their transaction's coordinator knows of this partition, `checked` is what the log's
        validator made of them, if somebody asked it already.
        """
        appended = self.log.append_as_leader(
            records, leader_epoch=self.leadership.leader_epoch, now_ms=now_ms, verified=verified, checked=checked
        )
        if not appended.duplicate:
            self._advance_high_watermark(self.log.end_offset)
            for watcher in self.watchers:
                watcher.grown(self, len(records))
        return appended

    def append_own(
        self, records: memoryview, *, now_ms: int, verified: bool = False, transaction_version: int = 0
    ) -> Appended:
        """Append a batch that this broker made; `verified` if it belongs to a transaction that its coordinator knows.

        The caller sees to it that nobody counts on the batch before the disk has it, if `flush.messages` asks for that.
        """
        appended = self.log.append_as_leader(
            records,
            leader_epoch=self.leadership.leader_epoch,
            now_ms=now_ms,
            origin=Origin.COORDINATOR,
            verified=verified,
            transaction_version=transaction_version,
        )
        self._advance_high_watermark(self.log.end_offset)
        for watcher in tuple(self.watchers):
            watcher.grown(self, len(records))
        return appended

    def readable_end(self, read_committed: bool) -> Offset:
        return self.last_stable_offset if read_committed else self.high_watermark

    def read(self, offset: Offset, *, bytes_max: int, end: Offset, one_batch: bool) -> FileRange:
        return self.log.read(offset, bytes_max=bytes_max, end=end, one_batch=one_batch)

    def epoch_end(self, leader_epoch: int) -> EpochEnd:
        """Where an epoch ends in this log; the one that we lead in is still open, even if it has no record yet."""
        if leader_epoch == self.leadership.leader_epoch:
            return EpochEnd(leader_epoch, self.log.end_offset)
        return self.log.epoch_end(leader_epoch)

    def delete_records(self, before: Offset, *, now_ms: int) -> Offset | ErrorCode:
        """Move the log's start; -1 stands for the high watermark. Gives the new low watermark."""
        target = self.high_watermark if before == -1 else before
        if not 0 <= target <= self.high_watermark:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        self.log.advance_log_start(target, now_ms=now_ms)
        self.disturb()
        return self.log.log_start_offset

    def lead(self, leadership: LeaderAndEpoch) -> None:
        if leadership != self.leadership:
            self.leadership = leadership
            self.is_leader = leadership.leader_id == self.broker_id and self.log.offline is None
            self._begin_epoch()
            self.disturb()

    def retire(self) -> None:
        """The topic is gone: nobody leads it, and whoever waits for it must look again."""
        self.leadership = _led_by_nobody(self.leadership.leader_epoch)
        self.is_leader = False
        if self.watchers:
            self.disturb()

    def _begin_epoch(self) -> None:
        """A leader's epoch begins where the log ends, also while there is no record of it.

        On a full disk it is noted with its first record: until then `epoch_end` knows it without a note.
        """
        if self.is_leader and self.leader_epoch > self.log.epochs.latest:
            with contextlib.suppress(LogError):
                self.log.assign_epoch(self.leader_epoch, self.log.end_offset)

    def disturb(self) -> None:
        for watcher in tuple(self.watchers):
            watcher.disturbed()
