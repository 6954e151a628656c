"""One partition on this broker: who leads it, what is committed, and who waits for it to grow.

The rules are pure: they read and change this object alone. The log below does the storing.

Records are *appended* when they are in this broker's log, which followers wait for, and *committed* when the high
watermark has passed them, which consumers, producers with acks=all, coordinators and markers wait for. A partition with
one replica commits within the append: it has no `replicas` to ask.
"""

from __future__ import annotations

import contextlib
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import NO_LEADER, NO_PARTITION_LEADER_EPOCH, Offset
from moldau.core.topic_names import is_internal
from moldau.log.appending.validation import Validated
from moldau.log.errors import LogError
from moldau.log.file_range import FileRange
from moldau.log.leader_epochs import EpochEnd
from moldau.log.partition_log import Appended, PartitionLog
from moldau.log.producers.producer_state import Origin
from moldau.replication.assignment import UNKNOWN_BYTES, Assignment, IsrChange, ReplicationTerms
from moldau.replication.watcher import Watchers

if TYPE_CHECKING:
    from moldau.replication.replicas import Replicas

DEFAULT_TERMS = ReplicationTerms()


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
        "_terms", "broker_id", "commit_watchers", "high_watermark", "index", "is_internal", "is_leader", "leadership",
        "log", "replicas", "topic", "topic_id",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        index: int,
        *,
        topic_id: bytes,
        log: PartitionLog,
        broker_id: int,
        leadership: LeaderAndEpoch,
        assignment: Assignment | None = None,
        high_watermark: int = 0,
        now_ms: int = 0,
        terms: ReplicationTerms = DEFAULT_TERMS,
    ) -> None:
        """`high_watermark` is what the checkpoint says, and `assignment` is None where there is one replica.

        Where replicas are judged, `now_ms` is `Clock.elapsed_ms`; where records are stored, what they are stamped with.
        """
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.is_internal = is_internal(topic)
        self.log = log
        self.broker_id = broker_id
        self.leadership = leadership
        self._terms = terms
        self.is_leader = False
        self.replicas: Replicas | None = None  # of a leader that has followers
        self.commit_watchers: Watchers = {}
        self.high_watermark = Offset(0)
        self._commit(Offset(min(max(high_watermark, log.log_start_offset), log.end_offset)), 0)
        self._take_leadership(assignment, now_ms)

    @property
    def leader_epoch(self) -> int:
        return self.leadership.leader_epoch

    @property
    def last_stable_offset(self) -> Offset:
        """Below it every transaction is decided."""
        unstable = self.log.producers.first_unstable_offset()
        return self.high_watermark if unstable is None else min(Offset(unstable), self.high_watermark)

    def _commit(self, offset: Offset, size_bytes: int) -> None:
        """The only place where the high watermark rises: all below it is committed, that many bytes more than before.

        A transaction whose marker is committed holds its readers back no longer, over more bytes than these.
        """
        self.high_watermark = offset
        producers = self.log.producers
        if producers.unreplicated and producers.replicated_to(offset):
            for watcher in tuple(self.commit_watchers):
                watcher.disturbed()
        elif self.commit_watchers:
            for watcher in tuple(self.commit_watchers):
                watcher.grown(self, size_bytes)

    def _replicate(self, replicas: Replicas, size_bytes: int) -> None:
        """Records were appended that followers have to fetch; how late those are was known at the last look at them."""
        replicas.appended(self.log.end_offset, size_bytes)
        for watcher in tuple(replicas.watchers):
            watcher.grown(self, size_bytes)
        self._advance(replicas, replicas.looked_ms)

    def _advance(self, replicas: Replicas, now_ms: int) -> None:
        """Commit what all replicas have that count. It never goes back: a replica that falls behind leaves the ISR."""
        if replicas.low_watermark_watchers:
            replicas.tell_low_watermark(self)
        log = self.log
        offset = replicas.high_watermark(
            log.end_offset, min_insync_replicas=log.config.min_insync_replicas, now_ms=now_ms
        )
        if offset is not None and offset > self.high_watermark:
            self._commit(offset, replicas.committed_bytes(offset))

    @property
    def refusal(self) -> ErrorCode:
        """Why this broker does not serve a partition that it does not lead."""
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if self.log.offline is None else ErrorCode.KAFKA_STORAGE_ERROR

    def go_offline(self) -> None:
        """The log can't be used any more: nobody is served, and whoever waits is told."""
        self.is_leader = False
        self.disturb()
        self._lose_followers()

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
            if self.replicas is None:
                self._commit(self.log.end_offset, len(records))
            else:
                self._replicate(self.replicas, len(records))
        return appended

    def append_own(
        self, records: memoryview, *, now_ms: int, verified: bool = False, transaction_version: int = 0
    ) -> Appended:
        """Append a batch that this broker made; `verified` if it belongs to a transaction that its coordinator knows.

        The caller sees to it that nobody counts on the batch before it is committed, and before the disk has it if
        `flush.messages` asks for that. As with acks=all it is refused while too few replicas are in sync.
        """
        if self.replicas is not None:
            self.check_in_sync()
        appended = self.log.append_as_leader(
            records,
            leader_epoch=self.leadership.leader_epoch,
            now_ms=now_ms,
            origin=Origin.COORDINATOR,
            verified=verified,
            transaction_version=transaction_version,
        )
        if self.replicas is None:
            self._commit(self.log.end_offset, len(records))
        else:
            self._replicate(self.replicas, len(records))
        return appended

    @property
    def has_enough_in_sync(self) -> bool:
        """Whether `min.insync.replicas` are."""
        replicas = self.replicas
        return replicas is None or not replicas.is_under_min_isr(self.log.config.min_insync_replicas)

    def check_in_sync(self) -> None:
        """Refuse records that are to be on all replicas, as long as too few are in sync."""
        replicas = self.replicas
        if replicas is not None and not self.has_enough_in_sync:
            raise replicas.too_few(self.log.config.min_insync_replicas, f"{self.topic}-{self.index}")

    def acknowledgement(self, required_offset: Offset) -> ErrorCode | None:
        """What to tell who waits for the records before an offset to be committed; None to go on waiting."""
        if not self.is_leader:
            return self.refusal
        if self.replicas is None:
            return ErrorCode.NONE if required_offset <= self.high_watermark else None
        return self.replicas.acknowledgement(
            required_offset,
            high_watermark=self.high_watermark,
            min_insync_replicas=self.log.config.min_insync_replicas,
        )

    def fetched_by(
        self, replica_id: int, offset: Offset, *, log_start_offset: Offset, broker_epoch: int, now_ms: int
    ) -> IsrChange | None:
        """A follower asks for an offset, so it has all before it. Gives the change of the ISR that the controller is to
        be asked for; raises ApiError for a broker that holds no replica, as far as is known here."""
        replicas, end_offset = self.replicas, self.log.end_offset
        follower = None if replicas is None else replicas.followers.get(replica_id)
        if replicas is None or follower is None:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        follower.fetched(
            offset,
            log_start_offset=log_start_offset,
            leader_end_offset=end_offset,
            broker_epoch=broker_epoch,
            now_ms=now_ms,
        )
        change = replicas.decide_expand(replica_id, high_watermark=self.high_watermark)
        if change is not None:
            replicas.ask(change)
        self._advance(replicas, now_ms)
        return change

    def shrink_isr(self, now_ms: int) -> IsrChange | None:
        """The change of the ISR that the controller is to be asked for, if followers lag for too long."""
        replicas = self.replicas
        if replicas is None:
            return None
        change = replicas.decide_shrink(self.log.end_offset, now_ms=now_ms)
        if change is not None:
            replicas.ask(change)
        self._advance(replicas, now_ms)  # one that was about to join may be late, and nobody else comes to say so
        return change

    def isr_changed(self, change: IsrChange, assignment: Assignment, *, now_ms: int) -> None:
        """The controller agreed to a change: what waited for a replica that left is committed."""
        replicas = self.replicas
        if replicas is not None and replicas.agreed(change, assignment):
            self._advance(replicas, now_ms)

    def isr_refused(self, change: IsrChange, error: ErrorCode) -> bool:
        """The controller did not agree to a change; True to ask again."""
        return self.replicas is not None and self.replicas.refused(change, error)

    @property
    def is_catching_up(self) -> bool:
        """Whether this leader does not know yet that all of earlier epochs is committed, as an earlier leader may have.

        Offsets that it told as the end would go back.
        """
        return self.replicas is not None and self.high_watermark < self.replicas.epoch_start_offset

    def readable_end(self, read_committed: bool) -> Offset:
        return self.last_stable_offset if read_committed else self.high_watermark

    def read(self, offset: Offset, *, bytes_max: int, end: Offset, one_batch: bool) -> FileRange:
        return self.log.read(offset, bytes_max=bytes_max, end=end, one_batch=one_batch)

    def epoch_end(self, leader_epoch: int) -> EpochEnd:
        """Where an epoch ends in this log; the one that we lead in is still open, even if it has no record yet."""
        end, led_in = self.log.end_offset, self.leadership.leader_epoch
        if leader_epoch == led_in:
            return EpochEnd(leader_epoch, end)
        return self.log.epochs.end_of(leader_epoch, end, led_in=led_in if self.is_leader else NO_PARTITION_LEADER_EPOCH)

    @property
    def low_watermark(self) -> Offset:
        """The least log start of the leader and of its followers that live."""
        start = self.log.log_start_offset
        return start if self.replicas is None else self.replicas.low_watermark(start)

    def delete_records(self, before: Offset, *, now_ms: int) -> Offset | ErrorCode:
        """Move the log's start; -1 stands for the high watermark. Gives what the low watermark is to reach."""
        target = self.high_watermark if before == -1 else before
        if not 0 <= target <= self.high_watermark:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        self.log.advance_log_start(target, now_ms=now_ms)
        self.disturb()
        if self.replicas is not None:
            self.replicas.tell_log_start(self)
        return target

    def lead(self, leadership: LeaderAndEpoch, assignment: Assignment | None = None, *, now_ms: int = 0) -> None:
        """Take over what the controller decided: who leads, and with which replicas (None: with one alone).

        The answer to AlterPartition may come before the image that says the same, or less.
        """
        if leadership == self.leadership and not self._is_reassigned(assignment):
            return
        self.leadership = leadership
        self._take_leadership(assignment, now_ms)
        self.disturb()
        if self.replicas is not None:
            self.replicas.disturb()

    def _is_reassigned(self, assignment: Assignment | None) -> bool:
        """Whether the replicas of a leader changed, unless it heard so before. A change that is under way stays so."""
        if not self.is_leader or (self.replicas is None and assignment is None):
            return False
        if self.replicas is None or assignment is None:
            return True
        return assignment.partition_epoch > self.replicas.partition_epoch

    def _take_leadership(self, assignment: Assignment | None, now_ms: int) -> None:
        self.is_leader = self.leadership.leader_id == self.broker_id and self.log.offline is None
        if not self.is_leader or assignment is None:
            self._lose_followers()
        if not self.is_leader:
            return
        self._begin_epoch()
        if self.log.offline is not None:  # the disk failed in just this moment
            self.is_leader = False
            self._lose_followers()
            return
        end_offset = self.log.end_offset
        if assignment is None:
            if end_offset > self.high_watermark:
                self._commit(end_offset, UNKNOWN_BYTES)
            return
        if self.replicas is None:
            from moldau.replication.replicas import Replicas  # a broker that is alone never needs them

            self.replicas = Replicas(self.broker_id, self._terms)
        self.replicas.assign(
            assignment,
            leader_epoch=self.leader_epoch,
            end_offset=end_offset,
            high_watermark=self.high_watermark,
            now_ms=now_ms,
        )
        self._advance(self.replicas, now_ms)

    def _lose_followers(self) -> None:
        """Those whose fetches wait here must hear that another broker leads, or that they hold no replica any more."""
        replicas, self.replicas = self.replicas, None
        if replicas is not None:
            replicas.disturb()

    def follow_high_watermark(self, offset: Offset, size_bytes: int) -> None:
        """As a follower: the leader says what is committed, of which this log may not have everything yet."""
        offset = min(offset, self.log.end_offset)
        if offset > self.high_watermark:
            self._commit(offset, size_bytes)

    def truncate_to(self, offset: Offset, *, now_ms: int) -> None:
        """As a follower: drop what the leader does not have. The high watermark can't be beyond the log's end.

        Records below it go only where an election was unclean, or where this log was behind its own checkpoint. It is
        lower before they go, for the log directory's checkpoint to be so, too.
        """
        self.high_watermark = min(self.high_watermark, offset)
        self.log.truncate_to(offset, now_ms=now_ms)
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        self.log.producers.replicated_to(self.high_watermark)  # they were read from the log again
        self.disturb()

    def restart_at(self, offset: Offset, *, now_ms: int) -> None:
        """As a follower: drop everything, for the leader has nothing before an offset."""
        self.high_watermark = min(self.high_watermark, offset)
        self.log.restart_at(offset, now_ms=now_ms)
        self.high_watermark = offset
        self.disturb()

    def retire(self) -> None:
        """The topic is gone: nobody leads it, and whoever waits for it must look again."""
        self.leadership = _led_by_nobody(self.leadership.leader_epoch)
        self.is_leader = False
        if self.commit_watchers:
            self.disturb()
        self._lose_followers()

    def _begin_epoch(self) -> None:
        """A leader's epoch begins where the log ends, also while there is no record of it.

        On a full disk it is noted with its first record: until then `epoch_end` knows it without a note.
        """
        if self.is_leader and self.leader_epoch > self.log.epochs.latest:
            with contextlib.suppress(LogError):
                self.log.assign_epoch(self.leader_epoch, self.log.end_offset)

    def disturb(self) -> None:
        """Tell everybody who waits for records to be committed to look again."""
        for watcher in tuple(self.commit_watchers):
            watcher.disturbed()
