"""Offsets as JSON in the stock connector's words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import (
    check_covers,
    offsets_from_json,
    offsets_to_json,
    parse_offsets,
    parse_partitions,
)

offsets = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 20)), st.integers(0, 2**62)
)


@settings(deadline=None)
@given(offsets)
def test_there_and_back(some: dict[TopicPartition, int]) -> None:
    shaped = offsets_to_json(some)
    assert offsets_from_json(json.loads(json.dumps(shaped))) == some
    assert list(shaped) == sorted(shaped)


def test_equal_offsets_are_equal_text() -> None:
    one = offsets_to_json({TopicPartition("t", 10): 1, TopicPartition("t", 9): 2})
    two = offsets_to_json({TopicPartition("t", 9): 2, TopicPartition("t", 10): 1})
    assert json.dumps(one) == json.dumps(two) == '{"t": {"9": 2, "10": 1}}'


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"t": 1}', '{"t": {"0": "x"}}', '{"t": {"x": 1}}', '{"t": {"0": true}}']
)
def test_other_shapes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_offsets(text)


def test_partitions() -> None:
    assert parse_partitions('{"b": [1, 0], "a": [2]}') == (
        TopicPartition("a", 2),
        TopicPartition("b", 0),
        TopicPartition("b", 1),
    )
    with pytest.raises(ValueError, match="list of partitions"):
        parse_partitions('{"a": [-1]}')


def test_every_partition_has_to_be_named() -> None:
    a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    assert check_covers({a: 1}, [a]) is None
    assert "leaves out t-1" in str(check_covers({a: 1}, [a, b]))
    assert "there is no t-1" in str(check_covers({a: 1, b: 1}, [a]))
