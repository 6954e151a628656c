"""A short measurement on this machine: a disk with fsync, a producer into one partition, and a consumer of it.

The broker is one of its own, on a free port, in a folder that goes with it, also when Ctrl-C ends the measurement.
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from moldau.cli.failures import CommandFailed
from moldau.cli.plan.figures import Measured
from moldau.cli.units import rate_text
from moldau.core.clock import SystemClock

DISK_BYTES_MAX = 1 << 30
LOG_BYTES_MAX = 1 << 30
BLOCK = 1 << 20
SYNC_EVERY = 16  # blocks: a broker's fsyncs are shared by many records
RECORD_BYTES_MAX = 900_000  # a broker takes no batch of a megabyte and more
PAYLOADS = 64  # different ones, in turn: one alone would be in every cache
TOPIC = "measured"
FLUSH_S, START_S, STALL_S = 30.0, 60.0, 10.0
FREE_BYTES_MIN = 3 << 30

Tell = Callable[[str], None]


def measure_machine(folder: Path, *, record_size: int, seconds: int, tell: Tell) -> Measured:
    """Raises CommandFailed with a line that says what was wrong."""
    if record_size > RECORD_BYTES_MAX:
        raise CommandFailed(f"--record-size: a measurement takes records of at most {RECORD_BYTES_MAX:,} bytes")
    check_room(folder)
    with tempfile.TemporaryDirectory(prefix="moldau-measure-", dir=folder) as scratch:
        disk = disk_rate(Path(scratch), seconds=seconds, tell=tell)
        producer, consumer = log_rates(Path(scratch), record_size=record_size, seconds=seconds, tell=tell)
    now = datetime.fromtimestamp(SystemClock().now_ms() / 1_000, tz=UTC)
    return Measured(
        producer, consumer, disk, record_size, f"{platform.node()}, {os.cpu_count()} cores", f"{now:%Y-%m-%d %H:%M} UTC"
    )


def check_room(folder: Path) -> None:
    try:
        room = os.statvfs(folder)
    except OSError as wrong:
        raise CommandFailed(f"cannot measure in {folder}: {wrong.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandFailed(f"cannot measure in {folder}: Permission denied")
    if room.f_bavail * room.f_frsize < FREE_BYTES_MIN:
        raise CommandFailed(f"cannot measure in {folder}: less than {FREE_BYTES_MIN >> 30} GiB are free")


def disk_rate(folder: Path, *, seconds: int, tell: Tell) -> float:
    """Bytes a second that reach the disk."""
    block = os.urandom(BLOCK)  # disks and file systems may compress zeros
    written, began_s = 0, time.perf_counter()
    with (folder / "disk").open("wb", buffering=0) as file:
        while (passed_s := time.perf_counter() - began_s) < seconds and written < DISK_BYTES_MAX:
            for _ in range(SYNC_EVERY):
                file.write(block)
            os.fsync(file.fileno())
            written += BLOCK * SYNC_EVERY
            tell(f"writing to the disk with fsync: {passed_s:.0f} of {seconds} s")
    rate = written / (time.perf_counter() - began_s)
    (folder / "disk").unlink()
    return rate


def log_rates(folder: Path, *, record_size: int, seconds: int, tell: Tell) -> tuple[float, float]:
    """Bytes a second into one partition, and out of it."""
    import moldau

    tell("starting a broker")
    with moldau.run(data_dir=folder / "data", timeout_s=START_S) as broker:
        broker.create_topic(TOPIC, partitions=1)
        produced, producer = _produce(broker.bootstrap_servers, record_size, seconds, tell)
        consumer = _consume(broker.bootstrap_servers, produced, seconds, tell)
    return producer, consumer


def _produce(servers: str, record_size: int, seconds: int, tell: Tell) -> tuple[int, float]:
    """Records that were acknowledged, and bytes a second of them."""
    from confluent_kafka import Producer

    payloads = [os.urandom(record_size) for _ in range(PAYLOADS)]
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 10, "acks": "all", "batch.size": 1_000_000})
    count, most = 0, max(1, LOG_BYTES_MAX // record_size)
    began_s = time.perf_counter()
    while (passed_s := time.perf_counter() - began_s) < seconds and count < most:
        for payload in payloads:
            try:
                producer.produce(TOPIC, payload)
            except BufferError:  # as many as are under way are enough
                producer.poll(0.1)
                continue
            count += 1
        producer.poll(0)
        tell(f"producing to one partition: {passed_s:.0f} of {seconds} s, {rate_text(count * record_size / passed_s)}")
    if producer.flush(FLUSH_S):
        raise CommandFailed("the measurement's broker does not acknowledge; is the disk slow or full?")
    return count, count * record_size / (time.perf_counter() - began_s)


def _consume(servers: str, produced: int, seconds: int, tell: Tell) -> float:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "measure", "enable.auto.commit": False})
    _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=STALL_S)
    if end < produced:
        consumer.close()
        raise CommandFailed(f"the measurement's broker took {end:,} of {produced:,} records; is the disk full?")
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    taken = count = 0
    began_s = last_s = 0.0
    waiting_since_s = time.perf_counter()
    try:
        while count < produced and (not began_s or last_s - began_s < seconds):
            messages = consumer.consume(10_000, timeout=0.5)
            last_s = time.perf_counter()
            if not messages:
                if last_s - waiting_since_s > STALL_S:
                    raise CommandFailed("the measurement's broker gives no records")
                continue
            waiting_since_s = last_s
            if not began_s:
                began_s = last_s  # the first ones waited for the connection, which no stream does
                count += len(messages)
                continue
            taken += sum(len(each.value() or b"") for each in messages)
            count += len(messages)
            tell(f"consuming it: {last_s - began_s:.0f} of {seconds} s, {rate_text(taken / (last_s - began_s))}")
    finally:
        consumer.close()
    if not taken:
        raise CommandFailed("too little was produced to measure a consumer: more --measure-seconds, or smaller records")
    return taken / (last_s - began_s)
