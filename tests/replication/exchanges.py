"""Leaders and followers with real logs that talk by function calls: the request and the answer, and no network."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from moldau.broker.fetching.fetch_sessions import Wanted
from moldau.broker.fetching.reading import Terms, refused
from moldau.broker.fetching.replica_reading import ReplicaFetch, read_for_replica
from moldau.core.config.topic import TopicConfig
from moldau.core.errors import ApiError
from moldau.log.file_range import FileRange
from moldau.log.partition_log import PartitionLog
from moldau.replication.assignment import Assignment, IsrChange, ReplicationTerms
from moldau.replication.follower import Follower, Outcome, Position
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.wire.batch import batches
from moldau.wire.messages.fetch import FetchPartition, PartitionData
from tests.log.samples import NOW_MS, PARTITION, TOPIC_ID, config, create

BYTES_MAX = 1 << 20
TERMS = Terms(version=17, bytes_max=BYTES_MAX, bytes_min=1, read_committed=False, changes_only=False)


@dataclass
class Asked:
    """The changes of the ISR that a leader asked for."""

    changes: list[IsrChange] = field(default_factory=list)

    def __call__(self, _: Partition, change: IsrChange) -> None:
        self.changes.append(change)


def replica(
    folder: Path,
    broker_id: int,
    *,
    leader: int,
    epoch: int = 0,
    assignment: Assignment | None = None,
    log: PartitionLog | None = None,
    high_watermark: int = 0,
    used: TopicConfig | None = None,
    terms: ReplicationTerms | None = None,
) -> Partition:
    return Partition(
        PARTITION.topic,
        PARTITION.partition,
        topic_id=TOPIC_ID,
        log=log or create(folder / str(broker_id), used or config(min_insync_replicas=1)),
        broker_id=broker_id,
        leadership=LeaderAndEpoch(leader, epoch),
        assignment=assignment,
        high_watermark=high_watermark,
        now_ms=NOW_MS,
        terms=terms or ReplicationTerms(),
    )


def serve(
    leader: Partition,
    broker_id: int,
    position: Position,
    *,
    now_ms: int = NOW_MS,
    bytes_max: int = BYTES_MAX,
    broker_epoch: int = 1,
    asked: Asked | None = None,
    is_repeated: bool = False,
) -> PartitionData:
    """A leader's answer, as its follower decodes it."""
    wanted = Wanted(
        TOPIC_ID,
        FetchPartition(
            partition=PARTITION.partition,
            current_leader_epoch=position.leader_epoch,
            fetch_offset=position.offset,
            last_fetched_epoch=position.last_epoch,
            log_start_offset=position.log_start_offset,
            partition_max_bytes=bytes_max,
        ),
    )
    fetching = ReplicaFetch(
        broker_id, broker_epoch, now_ms, is_stale=False, change_isr=asked or Asked(), is_repeated=is_repeated
    )
    try:
        data = read_for_replica(wanted, leader, fetching, bytes_max=bytes_max, one_batch=True)
    except ApiError as wrong:
        return refused(wanted, wrong.code, leader, TERMS)
    if isinstance(data.records, FileRange):
        data.records = memoryview(bytearray(data.records.read() if data.records.size else b""))
    return data


def fetch_once(leader: Partition, follower: Follower, *, now_ms: int = NOW_MS, bytes_max: int = BYTES_MAX) -> Outcome:
    position = follower.position()
    broker_id = follower.partition.broker_id
    data = serve(leader, broker_id, position, now_ms=now_ms, bytes_max=bytes_max)
    outcome = follower.answered(position, data, now_ms=now_ms)
    if outcome is Outcome.OUT_OF_RANGE:
        return follower.told_range(leader.log.log_start_offset, leader.log.end_offset, now_ms=now_ms)
    return outcome


def catch_up(leader: Partition, follower: Follower, *, now_ms: int = NOW_MS, bytes_max: int = BYTES_MAX) -> None:
    """Fetch until there is nothing new, and once more to hear what is committed."""
    for _ in range(1_000):
        if fetch_once(leader, follower, now_ms=now_ms, bytes_max=bytes_max) is Outcome.NOTHING:
            break
    else:
        raise AssertionError("a follower never comes to an end")
    fetch_once(leader, follower, now_ms=now_ms, bytes_max=bytes_max)


def content(partition: Partition, end: int | None = None, *, start: int | None = None) -> bytes:
    """All batches between two offsets, as they are in the files."""
    log = partition.log
    end = log.end_offset if end is None else end
    found, offset = b"", log.log_start_offset if start is None else start
    while offset < end:
        piece = log.read(offset, bytes_max=1 << 30, end=end, one_batch=True)  # type: ignore[arg-type]
        if not piece.size:
            break
        read = piece.read()
        found += read
        offset = _end_of(read)
    return found


def _end_of(piece: bytes) -> int:
    return [header for _, header in batches(memoryview(piece))][-1].next_offset
