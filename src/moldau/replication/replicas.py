"""The replicas of a partition as its leader sees them: who is in sync, and what they all have.

Nothing here touches a log, a clock or the controller. The rules are Apache Kafka's (`Partition.scala`; KIP-497 for
changes of the ISR that are under way, KIP-966 for the high watermark below `min.insync.replicas`, KIP-392 and
`RackAwareReplicaSelector` for who should read where).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import Offset
from moldau.replication.assignment import (
    NO_BROKER_EPOCH,
    UNKNOWN_BYTES,
    Assignment,
    InSyncReplica,
    IsrChange,
    ReplicationTerms,
)
from moldau.replication.replica_progress import ReplicaProgress
from moldau.replication.watcher import Watchers

if TYPE_CHECKING:
    from moldau.replication.partition import Partition

UNCOMMITTED_APPENDS_MAX = 1_000  # with too few in sync there is no end of them, and acks=1 goes on

# The controller says with these that it did not make the change, and never will.
_NOT_MADE = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
# After these only the image of the cluster tells what became of the change, or of the leadership.
_IMAGE_TELLS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INVALID_REQUEST, ErrorCode.NEW_LEADER_ELECTED,
    }
)  # fmt: skip


class Replicas:
    """The followers of one partition that this broker leads.

    `isr` is the one that the controller committed. `maximal_isr` has the replica that is about to join it too: the high
    watermark waits for every replica that the controller may elect.
    """

    __slots__ = (
        "_terms", "_uncommitted", "assigned", "broker_id", "epoch_start_offset", "followers", "isr", "leader_epoch",
        "looked_ms", "low_watermark_watchers", "maximal_isr", "offline", "partition_epoch", "pending", "watchers",
    )  # fmt: skip

    def __init__(self, broker_id: int, terms: ReplicationTerms) -> None:
        self.broker_id = broker_id
        self._terms = terms
        self.assigned: tuple[int, ...] = (broker_id,)
        self.offline: frozenset[int] = frozenset()
        self.followers: dict[int, ReplicaProgress] = {}
        self.isr = self.maximal_isr = frozenset({broker_id})
        self.pending: IsrChange | None = None
        self.leader_epoch = self.partition_epoch = -1
        self.epoch_start_offset = Offset(0)
        self.looked_ms = 0  # when it was asked last which of them are late
        self.watchers: Watchers = {}  # fetches of followers that wait for records to be appended
        self.low_watermark_watchers: Watchers = {}  # who waits for followers to delete records, too
        self._uncommitted: deque[tuple[Offset, int]] = deque()

    def assign(
        self, assignment: Assignment, *, leader_epoch: int, end_offset: Offset, high_watermark: Offset, now_ms: int
    ) -> None:
        """Take over what the controller decided; it ends every change of the ISR that is under way."""
        is_new_leader = self.leader_epoch < 0
        self.assigned = assignment.replicas
        self.offline = assignment.offline
        others = [each for each in assignment.replicas if each != self.broker_id]
        self.followers = {each: self.followers.get(each) or ReplicaProgress() for each in others}
        self._commit_isr(assignment.isr, assignment.partition_epoch)
        if leader_epoch > self.leader_epoch:
            is_continued = leader_epoch == self.leader_epoch + 1  # else another broker may have led in between
            self.leader_epoch = leader_epoch
            self.epoch_start_offset = end_offset
            for broker_id, follower in self.followers.items():
                is_in_sync = broker_id in assignment.isr
                follower.begin_epoch(end_offset, is_continued=is_continued, is_in_sync=is_in_sync, now_ms=now_ms)
        if is_new_leader and high_watermark < end_offset:
            self._uncommitted.append((end_offset, UNKNOWN_BYTES))

    def _commit_isr(self, isr: frozenset[int], partition_epoch: int) -> None:
        self.isr = self.maximal_isr = isr
        self.partition_epoch = partition_epoch
        self.pending = None

    def disturb(self) -> None:
        """Tell the followers whose fetches wait here to look again: who leads, or who follows, has changed."""
        for watcher in tuple(self.watchers):
            watcher.disturbed()

    def low_watermark(self, log_start_offset: Offset) -> Offset:
        """The least log start of the leader and of its followers, without those whose brokers do not live.

        A follower that did not fetch in this leadership may have everything still.
        """
        least = log_start_offset
        for broker_id, follower in self.followers.items():
            if follower.log_start_offset < least and self._terms.is_alive(broker_id):
                least = follower.log_start_offset
        return least

    def tell_log_start(self, partition: Partition) -> None:
        """The leader deleted records: followers are to hear of it before there is something to fetch for them."""
        for watcher in tuple(self.watchers):
            watcher.grown(partition, UNKNOWN_BYTES)

    def tell_low_watermark(self, partition: Partition) -> None:
        """Followers were looked at: one may have deleted records, or not live any more."""
        for watcher in tuple(self.low_watermark_watchers):
            watcher.grown(partition, 0)

    def appended(self, end_offset: Offset, size_bytes: int) -> None:
        uncommitted = self._uncommitted
        if len(uncommitted) == UNCOMMITTED_APPENDS_MAX:
            uncommitted.pop()  # the two are one from now on, of which parts may be committed
            size_bytes = UNKNOWN_BYTES
        uncommitted.append((end_offset, size_bytes))

    def committed_bytes(self, high_watermark: Offset) -> int:
        """How many bytes of what was appended are committed by an advance of the high watermark."""
        uncommitted, size_bytes, told_to = self._uncommitted, 0, None
        while uncommitted and uncommitted[0][0] <= high_watermark:
            told_to, more_bytes = uncommitted.popleft()
            size_bytes += more_bytes
        if uncommitted and uncommitted[0][1] == UNKNOWN_BYTES and told_to != high_watermark:
            size_bytes += UNKNOWN_BYTES
        return size_bytes

    def min_isr(self, min_insync_replicas: int) -> int:
        """A partition is never asked for more replicas than it has."""
        return min(min_insync_replicas, len(self.followers) + 1)

    def is_under_min_isr(self, min_insync_replicas: int) -> bool:
        return len(self.isr) < self.min_isr(min_insync_replicas)

    def too_few(self, min_insync_replicas: int, partition: str) -> ApiError:
        in_sync = ", ".join(map(str, sorted(self.isr)))
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"The size of the current ISR : {len(self.isr)} is insufficient to satisfy the min.isr requirement "
            f"of {self.min_isr(min_insync_replicas)} for partition {partition}, live replica(s) broker.id are "
            f": Set({in_sync})",
        )

    def high_watermark(self, end_offset: Offset, *, min_insync_replicas: int, now_ms: int) -> Offset | None:
        """What the leader and every replica have that is in sync, or caught up and about to be; None when too few are.

        A caught-up replica counts although it is not in the ISR: under a steady stream of writes it would never reach a
        high watermark that does not wait for it.
        """
        self.looked_ms = now_ms
        if self.is_under_min_isr(min_insync_replicas):
            return None
        least = end_offset
        for broker_id, follower in self.followers.items():
            if follower.log_end_offset < least and (
                broker_id in self.maximal_isr or self._is_joining(broker_id, follower, end_offset, now_ms)
            ):
                least = follower.log_end_offset
        return least

    def _is_joining(self, broker_id: int, follower: ReplicaProgress, end_offset: Offset, now_ms: int) -> bool:
        is_caught_up = follower.is_caught_up(end_offset, now_ms=now_ms, lag_ms_max=self._terms.lag_ms_max)
        return is_caught_up and self._is_eligible(broker_id, follower)

    def _is_eligible(self, broker_id: int, follower: ReplicaProgress) -> bool:
        """A replica that did not fetch in this leadership is not: nobody knows which life of its broker it is of."""
        if broker_id in self.offline:
            return False
        return follower.broker_epoch is not None and self._terms.is_eligible(broker_id, follower.broker_epoch)

    def acknowledgement(
        self, required_offset: Offset, *, high_watermark: Offset, min_insync_replicas: int
    ) -> ErrorCode | None:
        """What a producer hears of records that end before an offset; None as long as they are not committed."""
        if high_watermark < required_offset:
            return None
        if len(self.maximal_isr) < self.min_isr(min_insync_replicas):
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND  # the ISR shrank since the records were taken
        return ErrorCode.NONE

    def decide_expand(self, broker_id: int, *, high_watermark: Offset) -> IsrChange | None:
        """Whether a replica that just fetched joins the ISR: it must have what is committed, and all of earlier epochs.

        Else it may be elected before it has records that an earlier leader committed and this one does not know of yet.
        """
        follower = self.followers.get(broker_id)
        if self.pending is not None or follower is None or broker_id in self.isr:
            return None
        if follower.log_end_offset < max(high_watermark, self.epoch_start_offset):
            return None
        if not self._is_eligible(broker_id, follower):
            return None
        return self._change(self.isr | {broker_id}, joining=broker_id)

    def decide_shrink(self, end_offset: Offset, *, now_ms: int) -> IsrChange | None:
        """Whether replicas leave the ISR: those that had everything too long ago, be they slow or gone."""
        if self.pending is not None:
            return None
        late = {broker_id for broker_id in self.isr if self._is_late(broker_id, end_offset, now_ms)}
        return self._change(self.isr - late, joining=None) if late else None

    def _is_late(self, broker_id: int, end_offset: Offset, now_ms: int) -> bool:
        if broker_id == self.broker_id:
            return False
        follower = self.followers.get(broker_id)
        lag_ms_max = self._terms.lag_ms_max
        return follower is None or not follower.is_caught_up(end_offset, now_ms=now_ms, lag_ms_max=lag_ms_max)

    def _change(self, isr: frozenset[int], *, joining: int | None) -> IsrChange:
        members = tuple(InSyncReplica(each, self._broker_epoch(each)) for each in sorted(isr))
        return IsrChange(members, self.leader_epoch, self.partition_epoch, joining)

    def _broker_epoch(self, broker_id: int) -> int:
        """Without a fetch it may stay unknown: if that broker began another life, the controller took it out of the ISR
        and refuses this change for its partition epoch. The leader's own is in the request itself."""
        follower = self.followers.get(broker_id)
        known = None if follower is None else follower.broker_epoch
        return NO_BROKER_EPOCH if known is None else known

    def nearest(self, rack: str, *, offset: int, racks: Mapping[int, str | None]) -> int | None:
        """The follower that consumers in a rack should read from: of those there, who has come furthest; None for the
        leader. Only replicas in sync that have the offset: one that lags would hold its readers back for ever."""
        if racks.get(self.broker_id) == rack:
            return None
        there = [
            (progress.log_end_offset, progress.caught_up_ms, -broker_id)
            for broker_id, progress in self.followers.items()
            if broker_id in self.isr
            and racks.get(broker_id) == rack
            and progress.log_start_offset <= offset <= progress.log_end_offset
        ]
        return -max(there)[2] if there else None

    def ask(self, change: IsrChange) -> None:
        """The controller is asked. A replica that joins counts from now on; those that leave count until it agrees."""
        assert self.pending is None, "one change of the ISR is under way at a time"
        self.pending = change
        if change.joining is not None:
            self.maximal_isr = self.isr | {change.joining}

    def agreed(self, change: IsrChange, assignment: Assignment) -> bool:
        """The controller made a change; False when an image that came before its answer made it void."""
        if change is not self.pending or assignment.partition_epoch < self.partition_epoch:
            return False
        self._commit_isr(assignment.isr, assignment.partition_epoch)
        return True

    def refused(self, change: IsrChange, error: ErrorCode) -> bool:
        """The controller did not agree; True when it is to be asked again.

        Unless it says that the change was not made, it may have been: then the change stays pending, which is safe, and
        the next image ends it.
        """
        if change is not self.pending:
            return False
        if error in _NOT_MADE:
            self._commit_isr(self.isr, self.partition_epoch)
            return False
        return error not in _IMAGE_TELLS
