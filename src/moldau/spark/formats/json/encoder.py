"""A typed Arrow column to JSON records, column by column: no record is touched on its own unless it needs escapes."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from moldau.spark.formats.interface import FormatError, Side, as_binary, flat_offsets
from moldau.spark.formats.type_names import spark_name, struct_fields

WHOLE_NUMBER = r"^-?[0-9]+$"
NEEDS_ESCAPES = r'["\\\x00-\x1f\x7f]'


@dataclass(frozen=True, slots=True)
class JsonEncoder:
    """Compact JSON in UTF-8, as Spark's to_json writes it: members that are null are left out."""

    side: Side

    def check(self, arrow_type: pa.DataType) -> None:
        try:
            json_texts(pa.nulls(0, arrow_type))
        except FormatError as error:
            raise FormatError(f"column {self.side} is {spark_name(arrow_type)}: {error}") from None

    def encode(self, column: pa.Array) -> pa.BinaryArray:
        return as_binary(json_texts(column))


def json_texts(values: pa.Array) -> pa.StringArray:
    """The JSON text of each value; null stays null, and the caller says what that means where it stands."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _strings(values.cast(pa.string()))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        return _floats(values)
    if pa.types.is_date(kind):
        return _quoted(values.cast(pa.string()))
    if pa.types.is_timestamp(kind):
        return _timestamps(values)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        encoded = [None if value is None else base64.b64encode(value).decode() for value in values.to_pylist()]
        return _quoted(pa.array(encoded, pa.string()))
    if pa.types.is_null(kind):
        return values.cast(pa.string())
    return _nested(values)


def _nested(values: pa.Array) -> pa.StringArray:
    kind = values.type
    if pa.types.is_map(kind):
        return _maps(values)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _arrays(values)
    if pa.types.is_struct(kind):
        return _objects(values)
    raise FormatError(f"JSON has no form for {spark_name(kind)}")


def _quoted(texts: pa.StringArray) -> pa.StringArray:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _strings(values: pa.StringArray) -> pa.StringArray:
    quoted = _quoted(values)
    escaped = pc.fill_null(pc.match_substring_regex(values, NEEDS_ESCAPES), False)
    if not pc.any(escaped).as_py():
        return quoted
    texts = [json.dumps(text, ensure_ascii=False) for text in values.filter(escaped).to_pylist()]
    return pc.replace_with_mask(quoted, escaped, pa.array(texts, pa.string()))


def _floats(values: pa.Array) -> pa.StringArray:
    """Numbers by the shortest text that reads back the same; what JSON has no number for as text, as Spark does.

    A whole number keeps its point: whoever infers types from `5` would make an integer of it, and of `5.5` a double.
    """
    texts = values.cast(pa.string())
    whole = pc.match_substring_regex(texts, WHOLE_NUMBER)
    if pc.any(whole).as_py():
        texts = pc.binary_join_element_wise(texts, pc.if_else(whole, ".0", ""), "")
    finite = pc.is_finite(values)
    if pc.all(finite).as_py() in (True, None):
        return texts
    infinite = pc.if_else(pc.greater(values, 0), '"Infinity"', '"-Infinity"')
    names = pc.if_else(pc.is_nan(values), '"NaN"', infinite)
    return pc.if_else(finite, texts, names)


def _timestamps(values: pa.Array) -> pa.StringArray:
    micros = values.cast(pa.timestamp("us", values.type.tz))
    # Arrow keeps instants in UTC: without the zone the same numbers print as UTC, and no zone database is needed.
    texts = pc.replace_substring(micros.cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.string()), " ", "T")
    return pc.binary_join_element_wise('"', texts, 'Z"' if values.type.tz else '"', "")


def _objects(values: pa.StructArray) -> pa.StringArray:
    if not values.type.num_fields:
        raise FormatError("a struct needs at least one field")
    members = [
        pc.binary_join_element_wise(f",{json.dumps(member.name, ensure_ascii=False)}:", json_texts(column), "")
        for member, column in zip(struct_fields(values.type), values.flatten(), strict=True)
    ]
    # Each member brings its comma and the first is taken away: Arrow's own skipping of nulls drops whole rows.
    joined = pc.binary_join_element_wise("{", *members, "}", "", null_handling="replace", null_replacement="")
    return _unless_null(pc.replace_substring(joined, "{,", "{", max_replacements=1), values)


def _arrays(values: pa.ListArray) -> pa.StringArray:
    elements = pc.fill_null(json_texts(values.flatten()), "null")
    joined = pc.binary_join(pa.ListArray.from_arrays(flat_offsets(values), elements), ",")
    return _unless_null(pc.binary_join_element_wise("[", joined, "]", ""), values)


def _maps(values: pa.MapArray) -> pa.StringArray:
    if not (pa.types.is_string(values.type.key_type) or pa.types.is_large_string(values.type.key_type)):
        raise FormatError(f"JSON has no form for {spark_name(values.type)}: names of members are strings")
    entries = values.cast(pa.list_(pa.struct([("key", pa.string()), ("value", values.type.item_type)])))
    flat = entries.flatten()
    items = pc.fill_null(json_texts(flat.field("value")), "null")
    members = pc.binary_join_element_wise(_strings(flat.field("key")), items, ":")
    joined = pc.binary_join(pa.ListArray.from_arrays(flat_offsets(entries), members), ",")
    return _unless_null(pc.binary_join_element_wise("{", joined, "}", ""), values)


def _unless_null(texts: pa.StringArray, values: pa.Array) -> pa.StringArray:
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string())) if values.null_count else texts
