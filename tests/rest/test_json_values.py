"""Values are found in any stream of bytes, however it is cut into pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.rest.producing.json_values import JsonValues, NotJson, ValueTooLarge

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def split(*chunks: bytes, bytes_max: int = 10_000) -> list[bytes]:
    values = JsonValues(bytes_max)
    found = [each for chunk in chunks for each in values.feed(chunk)]
    last = values.end()
    return found if last is None else [*found, last]


@given(st.lists(ANY_JSON, max_size=4), st.lists(st.integers(1, 7), min_size=1, max_size=5), st.booleans())
def test_what_is_sent_in_pieces_comes_out_in_values(values: list[Any], sizes: list[int], is_array: bool) -> None:
    if not is_array and values and isinstance(values[0], list):
        values = [{}, *values]  # a list that comes first would be the stream itself
    texts = [json.dumps(each, ensure_ascii=len(values) % 2 == 0) for each in values]
    text = (f"[{','.join(texts)}]" if is_array else "\n".join(texts)).encode()
    chunks, at, turn = [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        chunks.append(text[at : at + size])
        at, turn = at + size, turn + 1
    assert [json.loads(each) for each in split(*chunks, bytes_max=1_000_000)] == values


def test_values_need_nothing_between_them() -> None:
    assert split(b'{"a":1}{"b":[2]}"x"3 4') == [b'{"a":1}', b'{"b":[2]}', b'"x"', b"3", b"4"]


def test_a_value_is_there_before_the_stream_goes_on() -> None:
    values = JsonValues(100)
    assert [*values.feed(b'{"a": "}"}')] == [b'{"a": "}"}']
    assert [*values.feed(b'{"a": "\\')] == []
    assert [*values.feed(b'"}"}')] == [b'{"a": "\\"}"}']


@pytest.mark.parametrize("text", [b"}", b'{"a":1},', b'{"a":', b'"a', b"[1", b"] 1", b"1 ]"])
def test_what_is_no_stream_of_values_is_told(text: bytes) -> None:
    with pytest.raises(NotJson):
        split(text)


def test_a_value_has_a_limit_and_the_stream_has_none() -> None:
    assert len(split(*[b'{"a":1} ' * 10] * 100, bytes_max=20)) == 1_000
    for chunks in ([b'{"a":"' + b"x" * 100], [b"{", *[b'"a":1,'] * 100], [b'{"a":"' + b"x" * 100 + b'"}']):
        with pytest.raises(ValueTooLarge):
            split(*chunks, bytes_max=20)
