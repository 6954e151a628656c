"""Records as JSON lines: what is written is read back, and what is wrong is named."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.cli.records.json import OutgoingRecord, record_as_json, record_from_json

content = st.none() | st.binary() | st.text().map(lambda text: text.encode(errors="replace"))
names = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A record as the client library gives it."""

    record: OutgoingRecord

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int | None:
        return self.record.partition

    def offset(self) -> int:
        return 42

    def timestamp(self) -> tuple[int, int]:
        return (0, -1) if self.record.timestamp_ms is None else (1, self.record.timestamp_ms)

    def key(self) -> bytes | None:
        return self.record.key

    def value(self) -> bytes | None:
        return self.record.value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self.record.headers or None


@given(
    st.builds(
        OutgoingRecord,
        key=content,
        value=content,
        headers=st.lists(st.tuples(names, content), max_size=4),
        partition=st.integers(0, 100),
        timestamp_ms=st.none() | st.integers(0, 2**53),
    )
)
def test_what_is_written_is_read_back(record: OutgoingRecord) -> None:
    line = record_as_json(ReadRecord(record))
    assert len(line.splitlines()) == 1
    assert record_from_json(line.encode()) == record


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b'"text"', "expected an object"),
        (b'{"colour": 1}', "unknown field 'colour'"),
        (b'{"key": 1}', "key: expected a string, null or"),
        (b'{"value": {"base64": "a", "more": 1}}', "value: expected a string, null or"),
        (b'{"value": {"base64": "?"}}', "value: not base64"),
        (b'{"headers": {"a": "b"}}', "headers: expected a list of pairs"),
        (b'{"headers": [["a"]]}', "headers: expected a list of pairs"),
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
