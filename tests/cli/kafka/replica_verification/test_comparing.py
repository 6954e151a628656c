"""Replicas that have the same, that are behind, and that differ."""

from __future__ import annotations

from moldau.cli.kafka.replica_verification.comparing import Compared, Fetched, compare
from moldau.core.ids import TopicPartition
from moldau.wire.batch import build_batch, stamp
from moldau.wire.records import Record

PLACE = TopicPartition("orders", 0)


def batch(offset: int, *values: bytes) -> bytes:
    built = bytearray(build_batch([Record(each, 0, None, value) for each, value in enumerate(values)]))
    stamp(built, 0, offset, 0)
    return bytes(built)


ONE, TWO, OTHER = batch(0, b"a", b"b"), batch(2, b"c"), batch(2, b"d")


def test_replicas_that_have_the_same() -> None:
    same = Fetched(3, ONE + TWO)
    assert compare(PLACE, 0, {1: same, 2: same, 3: same}) == Compared(3, 0, (), False)


def test_what_is_not_committed_is_not_compared() -> None:
    assert compare(PLACE, 0, {1: Fetched(2, ONE + TWO), 2: Fetched(2, ONE + OTHER)}) == Compared(2, 0, (), False)


def test_a_replica_that_is_behind() -> None:
    assert compare(PLACE, 0, {1: Fetched(3, ONE + TWO), 2: Fetched(2, ONE)}) == Compared(2, 1, (), False)
    assert compare(PLACE, 0, {1: Fetched(3, ONE + TWO), 2: Fetched()}) == Compared(0, 3, (), False)


def test_a_batch_that_was_cut_short_counts_in_the_next_round() -> None:
    assert compare(PLACE, 0, {1: Fetched(3, ONE + TWO), 2: Fetched(3, ONE + TWO[:-1])}) == Compared(2, 1, (), False)


def test_batches_that_differ() -> None:
    found = compare(PLACE, 0, {1: Fetched(3, ONE + TWO), 2: Fetched(3, ONE + OTHER)})
    (told,) = found.unequal
    assert told.startswith("partition orders-0 has unmatched checksum at offset 2; replica 1's checksum ")
    assert (found.next_offset, found.is_torn) == (3, False)


def test_batches_that_end_elsewhere() -> None:
    found = compare(PLACE, 0, {1: Fetched(3, ONE + TWO), 2: Fetched(3, batch(0, b"a"))})
    assert found.unequal == ("partition orders-0: replica 1's offset 1 doesn't match replica 2's offset 0",)
    assert found.is_torn


def test_nothing_at_all() -> None:
    assert compare(PLACE, 7, {1: Fetched(7), 2: Fetched(7)}) == Compared(7, 0, (), False)
