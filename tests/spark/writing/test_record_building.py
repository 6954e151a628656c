"""Columns as record batches: read back by the reader of the wire layer, which Kafka's bytes are tested with."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.spark.columns import HEADERS_TYPE
from moldau.spark.writing.record_building import build_batch, record_bytes
from moldau.wire.batch import batches, records, verify_crc
from moldau.wire.compression import Codec

blobs = st.none() | st.binary(max_size=300)
headers = st.none() | st.lists(st.tuples(st.text(max_size=9), blobs), max_size=3)
rows = st.lists(st.tuples(blobs, blobs, headers), min_size=1, max_size=300)


def built(keys: Any, values: Any, told: Any, *, batch_bytes_max: int, codec: Codec = Codec.NONE) -> list[bytes]:
    """Batches with sequences, as a producer numbers them."""
    sequence, found = 0, []
    for content in record_bytes(keys, values, told, batch_bytes_max=batch_bytes_max):
        batch = build_batch(
            content,
            codec=codec,
            timestamp_ms=1_700_000_000_000,
            attributes=0,
            producer_id=7,
            producer_epoch=1,
            base_sequence=sequence,
        )
        found.append(bytes(batch))
        sequence += content.count
    return found


def read_back(raw: list[bytes]) -> list[tuple[Any, Any, Any]]:
    found, sequence = [], 0
    for each in raw:
        view = memoryview(bytearray(each))
        ((at, header),) = batches(view)
        assert verify_crc(view, at, header)
        assert (header.producer_id, header.base_sequence) == (7, sequence)
        sequence = header.last_sequence + 1
        for number, record in enumerate(records(view, decompressed_bytes_max=1 << 30)):
            assert (record.offset, record.timestamp) == (number, 1_700_000_000_000)
            told = [(key.decode(), _bytes(value)) for key, value in record.headers]
            found.append((_bytes(record.key), _bytes(record.value), told))
        assert number + 1 == header.record_count
    return found


def _bytes(view: Any) -> bytes | None:
    return None if view is None else bytes(view)


@settings(deadline=None)
@given(rows, st.sampled_from([1, 500, 1_000_000]))
def test_what_is_laid_out_is_read_back(rows: list[tuple[Any, Any, Any]], batch_bytes_max: int) -> None:
    told = [None if row[2] is None else [{"key": key, "value": value} for key, value in row[2]] for row in rows]
    raw = built(
        pa.array([row[0] for row in rows], pa.binary()),
        pa.array([row[1] for row in rows], pa.binary()),
        pa.array(told, HEADERS_TYPE),
        batch_bytes_max=batch_bytes_max,
    )
    assert read_back(raw) == [(key, value, headers or []) for key, value, headers in rows]
    assert len(raw) == len(rows) or batch_bytes_max > 1


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_and_more_records_than_two_bytes_count(codec: Codec) -> None:
    values = [b"%d" % number for number in range(20_000)]
    raw = built(None, pa.array(values), None, batch_bytes_max=1 << 30, codec=codec)
    assert [value for _, value, _ in read_back(raw)] == values
    assert len(raw) == 1


def test_a_slice_of_a_column_is_what_is_written() -> None:
    values = pa.array([b"%d" % number for number in range(100)]).slice(10, 20)
    keys = pa.array([None if number % 3 else b"k" for number in range(100)]).slice(10, 20)
    assert [key for key, _, _ in read_back(built(keys, values, None, batch_bytes_max=1000))] == keys.to_pylist()
    assert [value for _, value, _ in read_back(built(keys, values, None, batch_bytes_max=1000))] == values.to_pylist()


def test_batches_stay_below_their_size() -> None:
    raw = built(None, pa.array([b"x" * 1000] * 100), None, batch_bytes_max=10_000)
    assert max(map(len, raw)) <= 10_100
    assert len(raw) == 12


def test_nothing_is_no_batch() -> None:
    assert built(None, pa.array([], pa.binary()), None, batch_bytes_max=1000) == []
