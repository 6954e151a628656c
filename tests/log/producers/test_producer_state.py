"""A retried batch is written once, a lost one is noticed, and a replaced producer is shut out."""

from __future__ import annotations

import time
from random import Random

import pytest

from moldau.core.errors import ErrorCode
from moldau.log.errors import LogError
from moldau.log.producers.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from moldau.log.producers.producer_state import (
    REFUSED_MAX,
    CompletedTransaction,
    Marker,
    Origin,
    ProducerStates,
    SentBatch,
)
from moldau.wire.batch import CONTROL, TRANSACTIONAL, BatchHeader

NOW_MS = 1_000
SEQUENCE_MAX = 2**31 - 1


def header(sequence: int, *, count: int = 1, epoch: int = 0, producer_id: int = 7, attributes: int = 0) -> BatchHeader:
    return BatchHeader(
        base_offset=0,
        body_bytes=100,
        leader_epoch=0,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
    )


def write(states: ProducerStates, sent: BatchHeader) -> SentBatch | None:
    """What a leader does with a client's batch: the duplicate's place, or None when it was appended."""
    offset = states.end_offset
    known = states.admit(sent, offset=offset, origin=Origin.CLIENT, verified=sent.is_transactional)
    if known is not None:
        return known
    last = offset + sent.last_offset_delta
    states.apply(sent, first_offset=offset, last_offset=last, timestamp=sent.max_timestamp)
    states.end_offset = last + 1
    return None


def end(states: ProducerStates, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0) -> int | None:
    """Append a marker; gives the last stable offset that it left."""
    sent = header(-1, epoch=epoch, attributes=CONTROL | TRANSACTIONAL)
    marker = Marker(commit, coordinator_epoch)
    states.check_marker(sent, marker, offset=states.end_offset, origin=Origin.COORDINATOR)
    completed = states.apply_marker(sent, marker, offset=states.end_offset, timestamp=NOW_MS)
    states.end_offset += 1
    return None if completed is None else states.complete(completed)


def refusal(states: ProducerStates, sent: BatchHeader) -> ErrorCode:
    with pytest.raises(LogError) as refused:
        write(states, sent)
    return refused.value.code


def test_the_last_five_batches_are_known_again_by_their_sequences() -> None:
    states = ProducerStates("t-0")
    for number in range(6):
        assert write(states, header(number * 3, count=3)) is None
    assert [write(states, header(number * 3, count=3)) for number in range(1, 6)] == [
        SentBatch(number * 3, number * 3 + 2, number * 3, number * 3 + 2, NOW_MS) for number in range(1, 6)
    ]
    assert refusal(states, header(0, count=3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(states, header(15, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused_and_changes_nothing() -> None:
    states = ProducerStates("t-0")
    write(states, header(0))
    assert refusal(states, header(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(states, header(1)) is None


def test_an_unknown_producer_may_begin_anywhere() -> None:
    """Retention may have deleted all it wrote, so Kafka asks no longer for sequence 0."""
    states = ProducerStates("t-0")
    assert write(states, header(41)) is None
    assert refusal(states, header(43)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_refused_beginning_is_not_overtaken_and_few_of_them_are_remembered() -> None:
    states = ProducerStates("t-0")
    states.refuse(header(0, producer_id=1))
    assert refusal(states, header(1, producer_id=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    for producer_id in range(2, 3 * REFUSED_MAX):
        states.refuse(header(0, producer_id=producer_id))
    assert len(states.refused) == REFUSED_MAX
    assert refusal(states, header(1, producer_id=3 * REFUSED_MAX - 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_begins_at_sequence_0_and_shuts_the_old_one_out() -> None:
    states = ProducerStates("t-0")
    write(states, header(0))
    assert refusal(states, header(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(states, header(0, epoch=1)) is None
    assert refusal(states, header(1)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(states, header(0)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_wrap_to_0() -> None:
    states = ProducerStates("t-0")
    write(states, header(SEQUENCE_MAX - 1, count=4))
    assert states.producers[7].batches == [SentBatch(SEQUENCE_MAX - 1, 1, 0, 3, NOW_MS)]
    assert write(states, header(SEQUENCE_MAX - 1, count=4)) is not None
    assert write(states, header(2)) is None


def test_a_sequence_that_ends_at_the_maximum_is_followed_by_0() -> None:
    states = ProducerStates("t-0")
    write(states, header(SEQUENCE_MAX))
    assert write(states, header(0)) is None


def test_silent_producers_expire_but_not_with_an_open_transaction() -> None:
    states = ProducerStates("t-0")
    write(states, header(0, producer_id=1))
    write(states, header(0, producer_id=2, attributes=TRANSACTIONAL))
    assert states.expire(NOW_MS + 99, 100) == 0
    assert states.expire(NOW_MS + 100, 100) == 1
    assert list(states.producers) == [2]


def test_a_transaction_holds_back_readers_until_its_marker_is_replicated() -> None:
    states = ProducerStates("t-0")
    write(states, header(0, producer_id=1))
    write(states, header(0, attributes=TRANSACTIONAL))
    write(states, header(1, attributes=TRANSACTIONAL))
    assert states.first_unstable_offset() == 1
    assert end(states, commit=False) == 4
    assert states.first_unstable_offset() == 1
    states.replicated_to(4)
    assert states.first_unstable_offset() is None


def test_a_marker_without_records_completes_nothing() -> None:
    states = ProducerStates("t-0")
    assert end(states, commit=True) is None
    assert states.producers[7].epoch == 0


def test_a_transactional_batch_needs_a_transaction_and_a_plain_one_must_not_be_in_one() -> None:
    states = ProducerStates("t-0")
    sent = header(0, attributes=TRANSACTIONAL)
    with pytest.raises(LogError) as refused:
        states.check(sent, offset=0, origin=Origin.CLIENT, verified=False)
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE
    write(states, sent)
    states.check(header(1, attributes=TRANSACTIONAL), offset=1, origin=Origin.CLIENT, verified=False)
    assert refusal(states, header(1)) is ErrorCode.INVALID_TXN_STATE


def test_a_replaced_coordinator_cannot_end_a_transaction() -> None:
    states = ProducerStates("t-0")
    write(states, header(0, attributes=TRANSACTIONAL))
    end(states, commit=True, coordinator_epoch=5)
    with pytest.raises(LogError) as refused:
        end(states, commit=False, coordinator_epoch=4)
    assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_leaders_batches_are_believed() -> None:
    states = ProducerStates("t-0")
    write(states, header(5, epoch=3))
    states.check(header(99, epoch=2), offset=1, origin=Origin.REPLICATION, verified=True)


def snapshot_of(states: ProducerStates) -> ProducerStates:
    loaded = ProducerStates("t-0")
    decode_snapshot(encode_snapshot(states), loaded)
    return loaded


def test_a_snapshot_remembers_each_producers_last_batch_and_transaction() -> None:
    states = ProducerStates("t-0")
    write(states, header(0))
    write(states, header(1, count=4))
    write(states, header(SEQUENCE_MAX, count=2, producer_id=8, attributes=TRANSACTIONAL))
    end(states, commit=True, epoch=2)
    loaded = snapshot_of(states)
    assert loaded.producers[8].batches == [SentBatch(SEQUENCE_MAX, 0, 5, 6, NOW_MS)]
    assert (loaded.producers[8].transaction_start, loaded.ongoing) == (5, {5: 8})
    assert (loaded.producers[7].epoch, loaded.producers[7].batches) == (2, [])
    assert encode_snapshot(loaded) == encode_snapshot(states)


def test_an_empty_snapshot_is_kafkas() -> None:
    assert encode_snapshot(ProducerStates("t-0")).hex() == "00014867" + "4bc7" + "00000000"


@pytest.mark.parametrize("at", [0, 3, 8, 20])
def test_a_damaged_snapshot_is_refused(at: int) -> None:
    states = ProducerStates("t-0")
    write(states, header(0))
    data = bytearray(encode_snapshot(states))
    data[at] ^= 1
    for damaged in (bytes(data), bytes(data[: at + 1])):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(damaged, ProducerStates("t-0"))


def test_the_first_unstable_offset_is_that_of_the_oldest_transaction_whose_marker_is_not_replicated() -> None:
    chance = Random(12)
    states, finished = ProducerStates("orders-0"), list[tuple[int, int]]()
    replicated, end = 0, 0
    for _ in range(3_000):
        if chance.random() < 0.6:
            end += chance.randrange(2, 9)
            transaction = CompletedTransaction(1, end - chance.randrange(2, 400), end - 1, False)
            states.complete(transaction)
            finished.append((transaction.first_offset, transaction.last_offset))
        elif end > replicated:
            replicated = chance.randrange(replicated, end) + 1
            states.replicated_to(replicated)
            finished = [each for each in finished if each[1] >= replicated]
        assert states.first_unstable_offset() == min((first for first, _ in finished), default=None)


def test_thousands_of_markers_that_are_not_replicated_cost_a_reader_nothing() -> None:
    states = ProducerStates("orders-0")
    for number in range(20_000):
        states.complete(CompletedTransaction(number, 2 * number, 2 * number + 1, False))
    begun_s = time.process_time()
    for _ in range(2_000):
        assert states.first_unstable_offset() == 0
    assert time.process_time() - begun_s < 0.5, "some microseconds each, where a look at all takes a millisecond"
