"""The bytes of keys and values, beside those of records that are read one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.wire.record_sizes import content_bytes
from moldau.wire.records import InvalidRecord, Record, encode_records, spans

CONTENTS = st.one_of(st.none(), st.binary(max_size=5), st.sampled_from([63, 64, 127, 128, 8_191, 8_192]).map(bytes))
HEADERS = st.lists(st.tuples(st.binary(max_size=3), st.none() | st.binary(max_size=3)), max_size=2).map(tuple)
RECORDS = st.builds(
    Record, offset=st.just(0), timestamp=st.integers(0, 1 << 40), key=CONTENTS, value=CONTENTS, headers=HEADERS
)
# Runs of the same record, as producers make them, and others between.
RUNS = st.lists(st.tuples(RECORDS, st.integers(1, 200), st.integers(0, 40)), min_size=1, max_size=6)


def laid_out(runs: list[tuple[Record, int, int]]) -> list[Record]:
    found: list[Record] = []
    for record, count, step_ms in runs:
        for number in range(count):
            moved = Record(len(found), record.timestamp + number * step_ms, record.key, record.value, record.headers)
            found.append(moved)
    return found


def one_by_one(payload: bytes, count: int) -> int:
    return sum(max(0, each.key_size) + max(0, each.value_size) for each in spans(payload, count))


def outcome(read: Callable[[bytes, int], int], payload: bytes, count: int) -> int | None:
    try:
        return read(payload, count)
    except InvalidRecord:
        return None


@given(RUNS)
def test_sizes_are_those_of_the_records(runs: list[tuple[Record, int, int]]) -> None:
    records = laid_out(runs)
    payload = bytes(encode_records(records, base_offset=0, base_timestamp=records[0].timestamp))
    wanted = sum(len(each.key or b"") + len(each.value or b"") for each in records)
    assert content_bytes(payload, len(records)) == wanted
    assert content_bytes(bytearray(payload), len(records)) == wanted


@given(RUNS, st.data())
def test_damage_is_found_wherever_reading_one_by_one_finds_it(
    runs: list[tuple[Record, int, int]], data: st.DataObject
) -> None:
    records = laid_out(runs)
    payload = bytearray(encode_records(records, base_offset=0, base_timestamp=records[0].timestamp))
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    damaged, count = bytes(payload), len(records)
    assert outcome(content_bytes, damaged, count) == outcome(one_by_one, damaged, count)


@pytest.mark.parametrize("count", [0, 999, 1_001])
def test_a_count_that_is_a_lie_is_found(count: int) -> None:
    payload = bytes(
        encode_records([Record(n, 0, None, b"x" * 100) for n in range(1_000)], base_offset=0, base_timestamp=0)
    )
    with pytest.raises(InvalidRecord):
        content_bytes(payload, count)
