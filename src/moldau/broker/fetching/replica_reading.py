"""Reading for followers: up to the log's end, and what their offsets tell a leader about them.

A follower asks for the offset at which its log ends, so a fetch is also the report of how far it has come. It says of
which epoch it read last (KIP-595): where that is no part of this log's history, the answer is where the two logs part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from moldau.broker.fetching.divergence import diverging_epoch
from moldau.broker.fetching.fetch_sessions import Wanted
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import NO_PARTITION_LEADER_EPOCH, Offset
from moldau.log.partition_log import EMPTY
from moldau.replication.assignment import IsrChange
from moldau.replication.partition import Partition
from moldau.replication.replica_progress import ReplicaProgress
from moldau.wire.messages.fetch import PartitionData

if TYPE_CHECKING:
    from moldau.replication.throttle import Throttle


class ReplicaFetch(NamedTuple):
    """The follower that fetches, by id and the epoch of its registration (-1: it does not say)."""

    replica_id: int
    broker_epoch: int
    now_ms: int
    is_stale: bool
    """A process that was replaced by a later one of the same broker: what it has counts no more."""
    change_isr: Callable[[Partition, IsrChange], None]
    throttle: Throttle | None = None
    is_repeated: bool = False
    """A second look at the same request, which tells nothing more about the follower."""

    def nothing_new(self, one: Wanted, partition: Partition) -> bool:
        return nothing_new_for_replica(one, partition, self)

    def must_hear(self, one: Wanted, data: PartitionData) -> bool:
        """Of records that the leader deleted and this follower has, once: somebody may wait for it to delete them, too.

        A follower that was away joins the ISR with its first fetch, and may be elected before a poll is over.
        """
        start_offset = data.log_start_offset
        return one.start_offset < start_offset and one.told_log_start_offset != start_offset

    def read(self, one: Wanted, partition: Partition, *, bytes_max: int, one_batch: bool) -> PartitionData:
        return read_for_replica(one, partition, self, bytes_max=bytes_max, one_batch=one_batch)


def nothing_new_for_replica(one: Wanted, partition: Partition, replica: ReplicaFetch) -> bool:
    """True for a follower that is at the end and was told everything; it is noted that it still is."""
    replicas, end = partition.replicas, partition.log.end_offset
    progress = None if replicas is None else replicas.followers.get(replica.replica_id)
    if (
        replicas is None
        or progress is None
        or one.offset != end
        or one.told_high_watermark != partition.high_watermark
        or one.told_log_start_offset != partition.log.log_start_offset
        or one.leader_epoch != partition.leadership.leader_epoch
        or one.last_epoch != partition.log.epochs.latest
        or replica.replica_id not in replicas.isr
        or replica.is_stale
        or not _is_as_known(one, progress, end, replica.broker_epoch)
    ):
        return False
    if not replica.is_repeated:
        progress.caught_up_ms = max(progress.caught_up_ms, replica.now_ms)
        progress.fetch_ms = replica.now_ms
    return True


def _is_as_known(one: Wanted, progress: ReplicaProgress, end: Offset, broker_epoch: int) -> bool:
    return (
        progress.log_end_offset == end
        and progress.fetch_leader_end_offset == end
        and progress.log_start_offset == one.start_offset
        and progress.broker_epoch == broker_epoch
    )


def read_for_replica(
    one: Wanted, partition: Partition, replica: ReplicaFetch, *, bytes_max: int, one_batch: bool
) -> PartitionData:
    """What comes after the follower's log, and what is committed by now, this fetch included."""
    error = partition.check_leader(one.leader_epoch)
    if error is not ErrorCode.NONE:
        raise ApiError(error)
    if replica.is_stale:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    replicas, offset = partition.replicas, Offset(one.offset)
    if replicas is None or replica.replica_id not in replicas.followers:
        is_ahead = one.leader_epoch != NO_PARTITION_LEADER_EPOCH  # it may know of an assignment that is on its way here
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH if is_ahead else ErrorCode.NOT_LEADER_OR_FOLLOWER)
    diverging, records = diverging_epoch(one, partition), EMPTY
    if diverging is None:
        partition.log.check_range(offset)
        if not replica.is_repeated:
            _note(one, partition, replica)
        end = partition.log.end_offset
        if offset < end and not _holds_back(partition, replica):
            records = partition.read(offset, bytes_max=bytes_max, end=end, one_batch=one_batch)
    data = PartitionData(
        partition_index=one.index,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        aborted_transactions=None,
        records=records,
    )
    if diverging is not None:
        data.diverging_epoch = diverging
    elif replica.throttle is not None and replica.throttle.is_throttled(partition):
        replica.throttle.record(len(records), replica.now_ms)
    return data


def _note(one: Wanted, partition: Partition, replica: ReplicaFetch) -> None:
    change = partition.fetched_by(
        replica.replica_id,
        Offset(one.offset),
        log_start_offset=Offset(one.start_offset),
        broker_epoch=replica.broker_epoch,
        now_ms=replica.now_ms,
    )
    if change is not None:
        replica.change_isr(partition, change)


def _holds_back(partition: Partition, replica: ReplicaFetch) -> bool:
    """A throttle holds back only those that are not in sync: else it would make replicas leave the ISR."""
    replicas, throttle = partition.replicas, replica.throttle
    return (
        throttle is not None
        and throttle.is_throttled(partition)
        and (replicas is None or replica.replica_id not in replicas.isr)
        and throttle.is_exceeded(replica.now_ms)
    )
