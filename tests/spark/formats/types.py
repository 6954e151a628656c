"""Types of columns and values that fit them, drawn at random."""

from __future__ import annotations

import string
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

EPOCH = datetime(1970, 1, 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.text(string.ascii_letters + "_", min_size=1, max_size=6)


def floats(width: Any) -> st.SearchStrategy[float]:
    return st.floats(width=width, allow_nan=False)


LEAVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.float32(): floats(32),
    pa.float64(): floats(64),
    pa.string(): TEXT,
    pa.binary(): st.binary(max_size=6),
    pa.date32(): st.dates(date(1, 1, 1), date(9999, 12, 31)),
    pa.timestamp("us", "UTC"): st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(
        lambda when: when.replace(tzinfo=UTC)
    ),
    pa.timestamp("us"): st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),
    pa.decimal128(10, 2): st.integers(-(10**10) + 1, 10**10 - 1).map(lambda cents: Decimal(cents).scaleb(-2)),
    pa.decimal128(38, 30): st.integers(-(10**20), 10**20).map(lambda unscaled: Decimal(unscaled).scaleb(-30)),
}


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> pa.DataType:
    kind = draw(st.sampled_from(["leaf", "leaf", "leaf", "list", "map", "struct"])) if depth else "leaf"
    if kind == "list":
        return pa.list_(pa.field("item", draw(types(depth - 1)), nullable=draw(st.booleans())))
    if kind == "map":
        return pa.map_(pa.string(), pa.field("value", draw(types(depth - 1)), nullable=draw(st.booleans())))
    if kind == "struct":
        return draw(structs(depth - 1))
    return draw(st.sampled_from(list(LEAVES)))


@st.composite
def structs(draw: st.DrawFn, depth: int = 2) -> pa.StructType:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    return pa.struct([pa.field(name, draw(types(depth)), nullable=draw(st.booleans())) for name in names])


def values_of(arrow_type: pa.DataType) -> st.SearchStrategy[Any]:
    if arrow_type in LEAVES:
        return LEAVES[arrow_type]
    if pa.types.is_list(arrow_type):
        return st.lists(field_values(arrow_type.value_field), max_size=3)
    if pa.types.is_map(arrow_type):
        return st.dictionaries(TEXT, field_values(arrow_type.item_field), max_size=3).map(
            lambda found: [*found.items()]
        )
    fields = [arrow_type.field(at) for at in range(arrow_type.num_fields)]
    return st.fixed_dictionaries({field.name: field_values(field) for field in fields})


def field_values(field: pa.Field) -> st.SearchStrategy[Any]:
    return st.none() | values_of(field.type) if field.nullable else values_of(field.type)


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    """A struct column with nulls in it, of a random type."""
    arrow_type = draw(structs())
    return pa.array(draw(st.lists(st.none() | values_of(arrow_type), max_size=6)), arrow_type)


def micros(when: datetime) -> int:
    return (when.replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1)
