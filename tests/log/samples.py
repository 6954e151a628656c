"""Batches and logs for the tests of the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from moldau.core.config.topic import TopicConfig
from moldau.core.ids import Offset, TopicId, TopicPartition
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.partition_log import PartitionLog
from moldau.wire.batch import Codec, Record, batches, build_batch, records

PARTITION = TopicPartition("orders", 0)
TOPIC_ID = TopicId(bytes(range(16)))
NOW_MS = 1_700_000_000_000
EVERYTHING = 1 << 30


def config(**overrides: object) -> TopicConfig:
    """The defaults, with keys written with underscores; tiny segments are allowed as they are inside Kafka's tests."""
    texts = {key.replace("_", "."): str(value) for key, value in overrides.items()}
    if "segment.bytes" in texts:
        texts["internal.segment.bytes"] = texts.pop("segment.bytes")
    return TopicConfig.defaults().override(texts)


def batch(
    values: Sequence[bytes],
    *,
    timestamps: Sequence[int] | None = None,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer: tuple[int, int, int] = (-1, -1, -1),
    attributes: int = 0,
    codec: Codec = Codec.NONE,
) -> memoryview:
    """A writable batch of these values; `producer` is id, epoch and first sequence."""
    stamps = timestamps or [NOW_MS] * len(values)
    made = [
        Record(base_offset + delta, stamp, b"k", value)
        for delta, (value, stamp) in enumerate(zip(values, stamps, strict=True))
    ]
    producer_id, producer_epoch, base_sequence = producer
    return memoryview(
        build_batch(
            made,
            base_offset=base_offset,
            codec=codec,
            leader_epoch=leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            attributes=attributes,
        )
    )


def log_in(
    directories: LogDirectories,
    partition: TopicPartition = PARTITION,
    *,
    topic_id: TopicId = TOPIC_ID,
    used: TopicConfig | None = None,
) -> PartitionLog:
    """The partition's log, opened or created here and now."""
    job = directories.prepare(partition, topic_id=topic_id, config=used or config(), now_ms=NOW_MS)
    job.run()
    return directories.settle(job)


def crash(directories: LogDirectories) -> None:
    """Let go of the locks as the end of the process would, and of nothing else."""
    for directory in directories._directories.values():
        directory.lock.release()


def create(folder: Path, used: TopicConfig | None = None) -> PartitionLog:
    return PartitionLog.create(
        folder / str(PARTITION), partition=PARTITION, topic_id=TOPIC_ID, config=used or config(), now_ms=NOW_MS
    )


def reopen(
    folder: Path,
    used: TopicConfig | None = None,
    *,
    clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    may_have_holes: bool = False,
) -> PartitionLog:
    return PartitionLog.open(
        folder / str(PARTITION),
        partition=PARTITION,
        topic_id=TOPIC_ID,
        config=used or config(),
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        now_ms=NOW_MS,
        may_have_holes=may_have_holes,
    )


def append(log: PartitionLog, *values: bytes, leader_epoch: int = 0) -> None:
    log.append_as_leader(batch(values), leader_epoch=leader_epoch, now_ms=NOW_MS)


def contents(log: PartitionLog, *, start: int | None = None, bytes_max: int = EVERYTHING) -> list[tuple[int, bytes]]:
    """Offsets and values as a consumer sees them that fetches from the log's start to its end."""
    found: list[tuple[int, bytes]] = []
    offset = Offset(log.log_start_offset if start is None else start)
    while offset < log.end_offset:
        view = memoryview(log.read(offset, bytes_max=bytes_max, end=log.end_offset, one_batch=True).read())
        before = offset
        for at, header in batches(view, partial_tail=True):
            for record in records(view[at : at + header.length_bytes], decompressed_bytes_max=EVERYTHING):
                if record.offset >= offset:
                    assert record.value is not None
                    found.append((record.offset, bytes(record.value)))
            offset = Offset(header.next_offset)
        if offset == before:
            break
    return found
