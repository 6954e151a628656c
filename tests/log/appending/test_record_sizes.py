"""The quick look at the sizes of records says what the thorough one says."""

from __future__ import annotations

import random

import pytest

from moldau.log.appending.record_sizes import WALKED_RECORDS_MAX, check_sizes, sizes_add_up
from moldau.wire.batch import HEADER_BYTES
from moldau.wire.records import InvalidRecord
from moldau.wire.varint import write_varint
from tests.log.samples import batch


def is_whole(records: memoryview, count: int) -> bool:
    try:
        check_sizes(records, count)
    except InvalidRecord:
        return False
    return True


@pytest.mark.parametrize("value_bytes", [0, 1, 50, 56, 57, 120, 8_000, 8_183])
@pytest.mark.parametrize("count", [1, 2, WALKED_RECORDS_MAX])
def test_a_batch_of_few_records_is_whole(count: int, value_bytes: int) -> None:
    records = batch([bytes(value_bytes)] * count)
    assert sizes_add_up(records, count)
    assert not sizes_add_up(records, count + 1)
    assert not sizes_add_up(records[:-1], count)


def test_a_record_above_eight_kilobytes_is_left_to_the_thorough_look() -> None:
    records = batch([bytes(8_184)])
    assert not sizes_add_up(records, 1)
    assert is_whole(records, 1)


def test_what_the_quick_look_accepts_the_thorough_one_accepts() -> None:
    chance = random.Random(7)
    accepted = 0
    for _ in range(20_000):
        count = chance.randint(1, 4)
        body = b"".join(
            write_varint(chance.choice([-1, 7, 63, 64, 65, 200])) + bytes(chance.choice([6, 7, 63, 64, 65, 200]))
            for _ in range(count)
        )
        records = memoryview(bytearray(HEADER_BYTES) + body)
        if sizes_add_up(records, count):
            accepted += 1
            assert is_whole(records, count)
    assert accepted > 100
