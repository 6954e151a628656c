"""A real partition in a folder of the test's own."""

from __future__ import annotations

from asyncio import Future, get_running_loop
from pathlib import Path

from moldau.core.config.topic import TopicConfig
from moldau.core.ids import TopicId, TopicPartition
from moldau.log.partition_log import PartitionLog
from moldau.replication.partition import LeaderAndEpoch, Partition

TOPIC = "__consumer_offsets"
TOPIC_ID = TopicId(bytes(range(16)))
CONFIG = TopicConfig.defaults().override({"cleanup.policy": "compact"})


def new_partition(folder: Path, index: int = 0) -> Partition:
    named = TopicPartition(TOPIC, index)
    log = PartitionLog.create(folder / str(named), partition=named, topic_id=TOPIC_ID, config=CONFIG, now_ms=0)
    return _led(log, index)


def reopened(partition: Partition) -> Partition:
    """As another broker process sees it after a crash of the one before."""
    log = PartitionLog.open(
        partition.log.directory,
        partition=partition.log.partition,
        topic_id=TOPIC_ID,
        config=CONFIG,
        clean=False,
        recovery_point=0,
        log_start_offset=0,
        now_ms=0,
    )
    return _led(log, partition.index)


def _led(log: PartitionLog, index: int) -> Partition:
    return Partition(TOPIC, index, topic_id=TOPIC_ID, log=log, broker_id=0, leadership=LeaderAndEpoch(0, 0))


def flush_at_once(log: PartitionLog) -> Future[None]:
    """An fsync that holds the loop, for tests that are about something else."""
    log.flush()
    done: Future[None] = get_running_loop().create_future()
    done.set_result(None)
    return done
