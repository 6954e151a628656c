"""Records as JSON lines: what is written is read back, and what is wrong is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.cli.records.json import OutgoingRecord, record_as_json, record_from_json
from moldau.client.fetched import FetchedRecord

content = st.none() | st.binary() | st.text().map(lambda text: text.encode(errors="replace"))
names = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


def as_read(record: OutgoingRecord) -> FetchedRecord:
    """The record as it comes from a partition."""
    return FetchedRecord(
        topic="orders",
        partition=record.partition or 0,
        offset=42,
        timestamp_ms=-1 if record.timestamp_ms is None else record.timestamp_ms,
        is_append_time=False,
        leader_epoch=0,
        key=record.key,
        value=record.value,
        headers=tuple((name.encode(), value) for name, value in record.headers),
    )


@given(
    st.builds(
        OutgoingRecord,
        key=content,
        value=content,
        headers=st.lists(st.tuples(names, content), max_size=4),
        partition=st.integers(0, 100),
        timestamp_ms=st.none() | st.integers(-(2**53), 2**53).filter(lambda time_ms: time_ms != -1),
    )
)
def test_what_is_written_is_read_back(record: OutgoingRecord) -> None:
    line = record_as_json(as_read(record))
    assert len(line.splitlines()) == 1
    assert record_from_json(line.encode()) == record


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"value": 1, "value_schema": {"id": 1}}', "value_schema: of which registry"),
        (b'"text"', "expected an object"),
        (b'{"colour": 1}', "unknown field 'colour'"),
        (b'{"key": 1}', "key: expected a string, null or"),
        (b'{"value": {"base64": "a", "more": 1}}', "value: expected a string, null or"),
        (b'{"value": {"base64": "?"}}', "value: not base64"),
        (b'{"headers": {"a": "b"}}', "headers: expected a list of pairs"),
        (b'{"headers": [["a"]]}', "headers: expected a list of pairs"),
        (rb'{"headers": [["a\ud800", "b"]]}', "surrogates not allowed"),
        (b'{"headers": [["a", 1]]}', "header 'a': expected a string"),
        (b'{"timestamp": "now"}', "timestamp: expected a whole number"),
        (b'{"timestamp": -1}', "timestamp: expected a whole number"),
        (b'{"timestamp": 9223372036854775808}', "timestamp: expected a whole number"),
        (b'{"partition": 2147483648}', "partition: expected a whole number"),
        (b'{"partition": true}', "partition: expected a whole number"),
    ],
)
def test_what_is_wrong_is_named(line: bytes, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        record_from_json(line)
