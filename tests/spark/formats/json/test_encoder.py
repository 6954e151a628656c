"""Typed columns to JSON, letter by letter."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from moldau.spark.formats.json.encoder import JsonEncoder
from moldau.spark.formats.json.inference import infer_json


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_a_double_that_is_whole_stays_a_double(kind: pa.DataType) -> None:
    """Whoever infers a schema from the records would otherwise find integers until the first fraction comes."""
    numbers = pa.array([5.0, -0.0, 0.5, 1e20, 1e-7, 123456.0, None, float("nan"), float("-inf")], kind)
    texts = JsonEncoder("value").encode(pa.StructArray.from_arrays([numbers], names=["d"])).to_pylist()
    said = [text.decode()[5:-1] for text in texts]
    assert said[:3] == ["5.0", "-0.0", "0.5"]
    assert said[5:] == ["123456.0", "", '"NaN"', '"-Infinity"']
    assert all(type(json.loads(text)["d"]) is float for text in texts[:6])
    assert infer_json(texts[:6]).schema.field("d").type == pa.float64()


def test_doubles_inside_of_others_too() -> None:
    nested = pa.array([[{"d": 5.0}], None], pa.list_(pa.struct([("d", pa.float64())])))
    assert JsonEncoder("value").encode(nested).to_pylist() == [b'[{"d":5.0}]', None]
