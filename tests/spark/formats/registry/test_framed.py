"""Framed records taken apart by the schema that wrote them."""

from __future__ import annotations

from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.schemas.framing import read_frame, write_id
from moldau.schemas.model import InvalidValue
from moldau.spark.columns import HEADERS_TYPE
from moldau.spark.formats.registry.framed import Apart, Written, taken_apart

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")


def apart(*values: bytes | None, headers: pa.Array | None = None, indexed: bool = False) -> Apart:
    return taken_apart(pa.array(values, pa.binary()), headers, is_key=False, indexed=indexed)


def found(taken: Apart) -> dict[Written, list[tuple[int, bytes]]]:
    return {
        group.written: list(zip(group.rows.tolist(), group.payloads.to_pylist(), strict=True)) for group in taken.groups
    }


def test_records_of_a_schema_come_together() -> None:
    taken = apart(write_id(7) + b"a", None, write_id(8) + b"b", write_id(7), b"text", b"", write_id(7) + b"c")
    assert found(taken) == {Written(7): [(0, b"a"), (3, b""), (6, b"c")], Written(8): [(2, b"b")]}
    assert sorted(taken.failures) == [4, 5]
    assert "starts with 0x74: no schema id" in taken.failures[4]


def test_a_slice_knows_its_own_rows() -> None:
    whole = pa.array([b"x" * 9, write_id(1) + b"a", None, write_id(2) + b"b"], pa.binary())
    taken = taken_apart(whole.slice(1), None, is_key=False, indexed=False)
    assert found(taken) == {Written(1): [(0, b"a")], Written(2): [(2, b"b")]}


def test_guids_and_ids_in_headers_are_found() -> None:
    headers = pa.array(
        [
            [{"key": "__value_schema_id", "value": write_id(GUID)}],
            [{"key": "__key_schema_id", "value": write_id(9)}, {"key": "other", "value": None}],
            None,
            [{"key": "__value_schema_id", "value": b"\7"}],
        ],
        HEADERS_TYPE,
    )
    taken = apart(b"whole", write_id(3) + b"a", write_id(GUID) + b"b", b"c", headers=headers)
    assert found(taken) == {Written(3): [(1, b"a")], Written(GUID): [(0, b"whole"), (2, b"b")]}
    assert "the header __value_schema_id starts with 0x07" in taken.failures[3]


def test_messages_of_protobuf_are_told_apart() -> None:
    first, nested = write_id(5, (0,)), write_id(5, (1, 2))
    taken = apart(first + b"a", nested + b"b", first, write_id(5), indexed=True)
    assert found(taken) == {Written(5, (0,)): [(0, b"a"), (2, b"")], Written(5, (1, 2)): [(1, b"b")]}
    assert "end within the message indexes" in taken.failures[3]


PAYLOADS = st.binary(max_size=4)
FRAMED = st.builds(lambda one, payload: write_id(one) + payload, st.sampled_from([0, 1, 1 << 30]), PAYLOADS)
INDEXED = st.builds(lambda payload: write_id(1, (0,)) + payload, PAYLOADS)


@pytest.mark.parametrize("indexed", [False, True])
@given(values=st.lists(st.none() | st.binary(max_size=12) | FRAMED | INDEXED, max_size=8))
def test_the_column_says_what_each_record_says(values: list[bytes | None], indexed: bool) -> None:
    taken = apart(*values, indexed=indexed)
    by_row = {row: (written, payload) for written, rows in found(taken).items() for row, payload in rows}
    for row, value in enumerate(values):
        if value is None:
            assert row not in by_row.keys() | taken.failures.keys()
            continue
        try:
            frame = read_frame(value, False)
            message, payload = frame.content(indexed=indexed)
        except InvalidValue:
            assert row in taken.failures
        else:
            assert by_row[row] == (Written(frame.schema, message), payload)
