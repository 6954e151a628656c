"""A partition with followers that exist only as the fetches that a test makes for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from moldau.core.config.topic import TopicConfig
from moldau.core.ids import Offset
from moldau.log.partition_log import PartitionLog
from moldau.replication.assignment import Assignment, IsrChange, ReplicationTerms
from moldau.replication.partition import LeaderAndEpoch, Partition
from tests.log.samples import NOW_MS, TOPIC_ID, config, create

LEADER, ALICE, BOB = 1, 2, 3
ALL = (LEADER, ALICE, BOB)
LAG_MS = 10_000


def assigned(*isr: int, partition_epoch: int = 0) -> Assignment:
    return Assignment(ALL, frozenset(isr or ALL), partition_epoch)


def replicated(
    folder: Path,
    *isr: int,
    topic: str = "orders",
    min_isr: int = 2,
    log: PartitionLog | None = None,
    high_watermark: int = 0,
    is_alive: Callable[[int], bool] = lambda _: True,
) -> Partition:
    """Led by broker 1, with brokers 2 and 3 as followers; all in sync unless told otherwise."""
    used: TopicConfig = config(min_insync_replicas=min_isr)
    return Partition(
        topic,
        0,
        topic_id=TOPIC_ID,
        log=log or create(folder, used),
        broker_id=LEADER,
        leadership=LeaderAndEpoch(LEADER, 0),
        assignment=assigned(*isr),
        high_watermark=high_watermark,
        now_ms=NOW_MS,
        terms=ReplicationTerms(LAG_MS, is_alive=is_alive),
    )


def fetch(
    partition: Partition, replica_id: int, offset: int, *, start: int = 0, now_ms: int = NOW_MS
) -> IsrChange | None:
    return partition.fetched_by(
        replica_id, Offset(offset), log_start_offset=Offset(start), broker_epoch=1, now_ms=now_ms
    )


def fetch_all(partition: Partition, *, now_ms: int = NOW_MS) -> None:
    """Both followers have everything."""
    for replica_id in (ALICE, BOB):
        fetch(partition, replica_id, partition.log.end_offset, now_ms=now_ms)
