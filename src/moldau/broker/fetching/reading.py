"""Reading what a Fetch request wants, within its limits: file ranges and watermarks, no bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from moldau.broker.fetching.divergence import diverging_epoch
from moldau.broker.fetching.fetch_sessions import Wanted
from moldau.broker.leaders import current_leader
from moldau.broker.network.outbox import INLINE_BYTES_MAX
from moldau.broker.topics.partitions import Partitions
from moldau.coordinator.long_work import SLICE_S, LongWork
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import NO_LEADER, NO_PARTITION_LEADER_EPOCH, Offset
from moldau.log.file_range import FileRange
from moldau.log.partition_log import EMPTY
from moldau.replication.partition import Partition
from moldau.wire.messages.fetch import AbortedTransaction, PartitionData

if TYPE_CHECKING:
    from moldau.broker.fetching.replica_reading import ReplicaFetch
    from moldau.broker.quotas.throttling import FetchQuota

_LEADER_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
CURRENT_LEADER_SINCE = 16
ZSTD_SINCE = 10
ANY_REPLICA_SINCE = 11  # a consumer that says where it is may be sent to another replica (KIP-392)
PARTITIONS_PER_LOOK = (
    16  # at the clock; one takes some microseconds, or as long as the disk where nothing is in the cache
)
FILES_HELD_MAX = 64  # of one answer; each holds a descriptor until it is sent, and there are few of those


class Terms(NamedTuple):
    """What holds for all partitions of one Fetch request."""

    version: int
    bytes_max: int
    bytes_min: int
    read_committed: bool
    changes_only: bool
    """Leave out a partition of which there is nothing new to tell."""
    replica: ReplicaFetch | None = None
    """The follower that asks; a consumer is None."""
    nearer_replica: Callable[[Partition, int], int | None] | None = None
    """Another broker that the consumer should read a partition from, at an offset."""
    quota: FetchQuota | None = None
    """The consumer's, where it has one."""

    def again(self) -> Terms:
        """For another look at the same request."""
        return self if self.replica is None else self._replace(replica=self.replica._replace(is_repeated=True))


class Reading:
    """What was found so far, which may be done some partitions at a time. What was refused comes last."""

    __slots__ = ("failed", "files_held", "found", "is_urgent", "left", "size_bytes", "to_read")

    def __init__(self, bytes_max: int) -> None:
        self.found: list[tuple[Wanted, PartitionData]] = []
        self.failed: list[tuple[Wanted, PartitionData]] = []
        self.left = bytes_max
        self.size_bytes = 0
        self.files_held = 0
        self.is_urgent = False  # the reader has to do something else than wait
        self.to_read: list[Wanted] = []

    @property
    def must_be_told(self) -> bool:
        return bool(self.failed) or self.is_urgent

    @property
    def has_error(self) -> bool:
        return bool(self.failed)


def read(wanted: Iterable[Wanted], terms: Terms, partitions: Partitions) -> Reading:
    """One pass over the partitions in order. The first batch found is given whole, whatever the limits.

    A pass that takes long ends early: what it left is `to_read`, by `read_rest`.
    """
    reading = Reading(terms.bytes_max)
    _read_slice(reading, iter(wanted), terms, partitions)
    return reading


async def read_rest(reading: Reading, terms: Terms, partitions: Partitions, long_work: LongWork) -> None:
    """Go on in slices, with each partition as it is at its moment."""
    while reading.to_read:
        await long_work.wait()
        _read_slice(reading, iter(reading.to_read), terms, partitions)


def _read_slice(reading: Reading, wanted: Iterator[Wanted], terms: Terms, partitions: Partitions) -> None:
    until_s = monotonic() + SLICE_S
    reading.to_read = []
    while some := list(islice(wanted, PARTITIONS_PER_LOOK)):
        _read_some(reading, some, terms, partitions)
        if len(some) == PARTITIONS_PER_LOOK and monotonic() >= until_s:
            reading.to_read = list(wanted)
            break
    if not reading.to_read:
        reading.found += reading.failed


def _read_some(reading: Reading, wanted: list[Wanted], terms: Terms, partitions: Partitions) -> None:
    found, failed, left = reading.found, reading.failed, reading.left
    size_bytes, files_held = reading.size_bytes, reading.files_held
    changes_only, replica = terms.changes_only, terms.replica
    for one in wanted:
        partition = one.partition
        if partition is None or not partition.is_leader:
            partition = one.partition = find(one, partitions)
        if (
            partition is not None
            and changes_only
            and (nothing_new(one, partition) if replica is None else replica.nothing_new(one, partition))
        ):
            continue
        try:
            if partition is None:
                raise ApiError(partitions.why_missing(one.topic, one.index))
            if replica is None:
                data = read_one(one, partition, terms, left=left, one_batch=size_bytes == 0)
            else:
                bytes_max = min(one.bytes_max, left)
                data = replica.read(one, partition, bytes_max=bytes_max, one_batch=size_bytes == 0)
        except ApiError as wrong:
            failed.append((one, refused(one, wrong.code, partition, terms)))
            continue
        records = data.records
        if records is None or not (size := len(records)):
            reading.is_urgent |= is_sent_elsewhere(data) or (replica is not None and replica.must_hear(one, data))
        else:
            files_held += 1
            if files_held > FILES_HELD_MAX:
                size = _let_go(data, size)
                left = left if size else 0
            size_bytes += size
            left = max(0, left - size)
        found.append((one, data))
    reading.left, reading.size_bytes, reading.files_held = left, size_bytes, files_held


def worth_a_look(wanted: Iterable[Wanted], told: Set[Wanted], grown: Set[Partition]) -> list[Wanted]:
    """Those of an incremental fetch that a second look can find anything in, in order.

    `told` are those of which the first look had something to tell. Of all others there was nothing to tell, and there
    is nothing now unless they grew.
    """
    return [one for one in wanted if one.partition in grown or one in told]


def _let_go(data: PartitionData, size: int) -> int:
    """Read a short range, as sending it would anyway, and leave out a long one; gives the bytes that are left."""
    is_short = size <= INLINE_BYTES_MAX
    data.records = data.records.read() if is_short and isinstance(data.records, FileRange) else EMPTY
    return size if is_short else 0


def find(one: Wanted, partitions: Partitions) -> Partition | None:
    topic = one.topic
    if isinstance(topic, str):
        return partitions.get(topic, one.index)
    return partitions.get_by_id(topic, one.index)


def nothing_new(one: Wanted, partition: Partition) -> bool:
    """True when the consumer stands at the end and was told everything about it: the usual case of a long poll."""
    end = partition.high_watermark
    return (
        one.offset == end
        and one.told_high_watermark == end
        and one.told_log_start_offset == partition.log.log_start_offset
        and one.leader_epoch in (NO_PARTITION_LEADER_EPOCH, partition.leadership.leader_epoch)
        and one.last_epoch == NO_PARTITION_LEADER_EPOCH
        and partition.is_leader
    )


def read_one(one: Wanted, partition: Partition, terms: Terms, *, left: int, one_batch: bool) -> PartitionData:
    error = partition.check_leader(one.leader_epoch)
    if error is not ErrorCode.NONE and not (_is_follower(partition, error) and terms.version >= ANY_REPLICA_SINCE):
        raise ApiError(error)
    diverging = diverging_epoch(one, partition)
    if terms.version < ZSTD_SINCE and partition.log.config.compression_type == "zstd":
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    nearer = None if terms.nearer_replica is None else terms.nearer_replica(partition, one.offset)
    end = partition.readable_end(terms.read_committed)
    bytes_max = min(one.bytes_max, left)
    offset = Offset(one.offset)
    records = EMPTY
    if diverging is None and nearer is None:
        records = partition.read(offset, bytes_max=bytes_max, end=end, one_batch=one_batch)
    data = PartitionData(
        partition_index=one.index,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        aborted_transactions=None,
        records=records,
    )
    if nearer is not None:
        data.preferred_read_replica = nearer
    elif diverging is not None:
        data.diverging_epoch = diverging
    if terms.read_committed:
        data.aborted_transactions = aborted(partition, offset, end) if len(records) else []
    return data


def _is_follower(partition: Partition, error: ErrorCode) -> bool:
    """Of a leader that it knows. A broker that led before it was started again may have lost what it had: who still
    takes it for the leader, and hears that its offset is out of range, would begin anew somewhere else."""
    return error is ErrorCode.NOT_LEADER_OR_FOLLOWER and partition.leadership.leader_id != NO_LEADER


def is_sent_elsewhere(data: PartitionData) -> bool:
    """To another broker, or back to where the histories part."""
    return data.preferred_read_replica >= 0 or data.diverging_epoch.end_offset >= 0


def aborted(partition: Partition, start: Offset, end: Offset) -> list[AbortedTransaction]:
    """Sorted by first offset, which read_committed consumers rely on."""
    return [
        AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
        for first_offset, producer_id in sorted(partition.log.aborted_transactions(start, end))
    ]


def refused(one: Wanted, code: ErrorCode, partition: Partition | None, terms: Terms) -> PartitionData:
    data = PartitionData(
        partition_index=one.index,
        error_code=code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=None if partition is not None else [],
        records=b"",
    )
    if partition is not None and code in _LEADER_MOVED and terms.version >= CURRENT_LEADER_SINCE:
        data.current_leader = current_leader(partition)
    return data
