"""What the log itself costs, without a network: microseconds per call, the best of several rounds.

    python bench/log.py [FOLDER]

Appends are of one batch each; the write to the page cache is most of it. Reads give a file range, not bytes.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from moldau.core.config.topic import TopicConfig
from moldau.core.ids import Offset, TopicPartition, random_uuid
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.partition_log import PartitionLog
from moldau.wire.batch import Record, build_batch, write_crc

NOW_MS = 1_700_000_000_000
ROUNDS = 10
CALLS = 500
PARTITIONS = 2_000
SEQUENCE_AT = 53
PARTITION = TopicPartition("bench", 0)


def best_us(call: Callable[[int], object]) -> float:
    """Microseconds per call in the fastest round."""
    rounds = []
    for number in range(ROUNDS):
        began = time.perf_counter()
        for each in range(number * CALLS, (number + 1) * CALLS):
            call(each)
        rounds.append((time.perf_counter() - began) / CALLS * 1e6)
    return min(rounds)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def new_log(folder: Path, name: str) -> PartitionLog:
    return PartitionLog.create(
        folder / name, partition=PARTITION, topic_id=random_uuid(), config=TopicConfig.defaults(), now_ms=NOW_MS
    )


def sent_batches(records: int, value_bytes: int, *, idempotent: bool) -> list[memoryview]:
    """As many batches as the rounds take, each in a buffer of its own, as a request brings it."""
    made = [Record(offset, NOW_MS, None, b"x" * value_bytes) for offset in range(records)]
    producer_id, sequence = (7, 0) if idempotent else (-1, -1)
    pattern = build_batch(made, base_offset=0, producer_id=producer_id, producer_epoch=sequence, base_sequence=sequence)
    sent = []
    for number in range(ROUNDS * CALLS):
        copy = bytearray(pattern)
        if idempotent:
            struct.pack_into(">i", copy, SEQUENCE_AT, number * records)
            write_crc(copy, 0, len(copy))
        sent.append(memoryview(copy))
    return sent


def append(log: PartitionLog, sent: list[memoryview], number: int) -> object:
    return log.append_as_leader(sent[number], leader_epoch=0, now_ms=NOW_MS)


def appends(folder: Path) -> PartitionLog:
    for records, value_bytes, idempotent in ((1, 100, False), (15, 1000, False), (140, 100, False), (140, 100, True)):
        log = new_log(folder, f"{records}-{value_bytes}-{idempotent}")
        sent = sent_batches(records, value_bytes, idempotent=idempotent)
        took = best_us(partial(append, log, sent))
        kind = "idempotent" if idempotent else "plain"
        say(f"append {records} x {value_bytes} B, {kind}: {took:.1f} us")
    return log


def reads(log: PartitionLog) -> None:
    end = log.end_offset

    def read(offset: int) -> object:
        return log.read(Offset(offset), bytes_max=1 << 20, end=end, one_batch=True)

    say(f"read anywhere: {best_us(lambda each: read(each * 7919 * 140 % end)):.1f} us")
    say(f"read at the end: {best_us(lambda _: read(end)):.1f} us")


def starts(folder: Path) -> None:
    topic_id, config = random_uuid(), TopicConfig.defaults()
    for what in ("create", "open"):
        began = time.perf_counter()
        directories = LogDirectories.open([folder], node_id=1)
        for index in range(PARTITIONS):
            partition = TopicPartition("many", index)
            job = directories.prepare(partition, topic_id=topic_id, config=config, now_ms=NOW_MS)
            job.run()
            directories.settle(job)
        say(f"{what} {PARTITIONS} partitions: {time.perf_counter() - began:.2f} s")
        directories.close()


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        reads(appends(Path(folder)))
        starts(Path(folder) / "many")


if __name__ == "__main__":
    main()
