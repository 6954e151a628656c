"""A partition's high watermark, and what is forgotten as it advances."""

from __future__ import annotations

from pathlib import Path

from moldau.core.errors import ErrorCode
from moldau.log.producers.end_transaction_marker import encode_marker
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.wire.batch import CONTROL, TRANSACTIONAL, Record, build_batch
from tests.log.samples import NOW_MS, TOPIC_ID, batch, create

PRODUCER = 7


def led(folder: Path) -> Partition:
    return Partition("orders", 0, topic_id=TOPIC_ID, log=create(folder), broker_id=1, leadership=LeaderAndEpoch(1, 0))


def transact(partition: Partition, sequence: int, *, commit: bool) -> None:
    sent = batch([b"v"], attributes=TRANSACTIONAL, producer=(PRODUCER, 0, sequence))
    partition.append(sent, now_ms=NOW_MS, verified=True)
    key, value = encode_marker(is_commit=commit, coordinator_epoch=0)
    marker = build_batch(
        [Record(0, NOW_MS, key, value)], producer_id=PRODUCER, producer_epoch=0, attributes=TRANSACTIONAL | CONTROL
    )
    assert partition.last_stable_offset == partition.high_watermark - 1
    partition.append_own(memoryview(marker), now_ms=NOW_MS)


def test_a_finished_transaction_is_forgotten_as_the_high_watermark_passes_it(tmp_path: Path) -> None:
    partition = led(tmp_path)
    for sequence in range(100):
        transact(partition, sequence, commit=sequence % 2 == 0)
        assert not partition.log.producers.unreplicated
        assert partition.last_stable_offset == partition.high_watermark == 2 * (sequence + 1)


def test_an_offline_partition_is_not_led_again(tmp_path: Path) -> None:
    partition = led(tmp_path)
    partition.log.offline = "Input/output error"
    partition.go_offline()
    assert partition.check_leader(-1) is ErrorCode.KAFKA_STORAGE_ERROR
    partition.lead(LeaderAndEpoch(1, 5))
    assert not partition.is_leader
    assert partition.check_leader(0) is partition.refusal is ErrorCode.KAFKA_STORAGE_ERROR
