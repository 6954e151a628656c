"""Avro schemas as Arrow types, both ways, by the rules of Spark's own Avro source."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType

from moldau.spark.formats.ddl import decimal_of
from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.type_names import spark_name, struct_fields, struct_of

# fastavro rounds a decimal that is too long for its precision; under a name of our own our functions read and write it.
OUR_DECIMAL = "moldau-decimal"

PRIMITIVE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
# A logical type of Avro: the type in which its numbers are counted, before it is brought to Spark's microseconds.
LOGICAL: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
WIDER_UNIONS = ((frozenset({"int", "long"}), "long"), (frozenset({"float", "double"}), "double"))
TO_AVRO: dict[pa.DataType, Any] = {
    **{arrow_type: name for name, arrow_type in PRIMITIVE.items()},
    pa.int8(): "int",
    pa.int16(): "int",
    pa.date32(): {"type": "int", "logicalType": "date"},
}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
TOP_NAME = "topLevelRecord"  # as Spark's to_avro calls it


@dataclass(frozen=True)
class AvroSchema:
    """A schema as fastavro wants it, without its logical types, and the Arrow type in three stages.

    `stored_type` has the numbers that are in the bytes, `counted_type` the same numbers as dates and times in the
    schema's unit, `arrow_type` is what Spark gets.
    """

    parsed: Any
    stored_type: pa.DataType
    counted_type: pa.DataType
    arrow_type: pa.DataType
    nullable: bool


def parse_avro_schema(text: str, *, place: str) -> AvroSchema:
    stripped = text.strip()
    try:
        document = json.loads(stripped) if stripped[:1] in '{["' else stripped
    except ValueError as error:
        raise FormatError(f"{place} is not JSON: {error}") from None
    return avro_schema_of(document, place=place)


def parse_writer(text: str) -> Any:
    """A schema that records were written by, as fastavro wants it: nothing in it has to have a type of a column."""
    return fastavro.parse_schema(_without_logical_types(json.loads(text)), _write_hint=False)


def avro_schema_of(document: Any, *, place: str) -> AvroSchema:
    try:
        parsed = fastavro.parse_schema(document, _write_hint=False)
    except (SchemaParseException, UnknownType, KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"{place} is not an Avro schema: {str(error) or type(error).__name__}") from None
    counted = _Walk(place, logical=True).field_of("", parsed)
    stored = _Walk(place, logical=False).field_of("", parsed)
    plain = fastavro.parse_schema(_without_logical_types(document))
    return AvroSchema(
        parsed=plain,
        stored_type=stored.type,
        counted_type=counted.type,
        arrow_type=in_microseconds(counted.type),
        nullable=counted.nullable,
    )


class _Walk:
    """A schema that fastavro has parsed to Arrow fields; named types are found by the full names that it gave them."""

    def __init__(self, place: str, *, logical: bool) -> None:
        self.place = place
        self.logical = logical
        self.named: dict[str, Any] = {}
        self.open: list[str] = []

    def field_of(self, name: str, schema: Any) -> pa.Field:
        if not isinstance(schema, list):
            return pa.field(name, self.type_of(schema), nullable=False)
        others = [branch for branch in schema if branch != "null"]
        kinds = frozenset(branch for branch in others if isinstance(branch, str))
        wider = next((kind for union, kind in WIDER_UNIONS if union == kinds and len(others) == len(kinds)), None)
        if len(others) != 1 and wider is None:
            names = ", ".join(branch if isinstance(branch, str) else str(branch.get("type")) for branch in schema)
            raise FormatError(f"{self.place}: field {name or 'itself'}: a union of {names} has no type of a column")
        return pa.field(name, self.type_of(wider or others[0]), nullable=len(others) != len(schema))

    def type_of(self, schema: Any) -> pa.DataType:
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self.field_of("", kind).type
        if kind in {"array", "map", "record", "error", "enum", "fixed"} or kind in self.named:
            return self.complex_type(kind, schema)
        if kind not in PRIMITIVE:
            raise FormatError(f"{self.place}: {kind!r} alone has no type of a column")
        return self.logical_type(kind, schema) or PRIMITIVE[kind]

    def logical_type(self, kind: str, schema: Any) -> pa.DataType | None:
        name = schema.get("logicalType") if isinstance(schema, dict) else None
        if name == "decimal" and kind in {"bytes", "fixed"}:
            return decimal_of(int(schema["precision"]), int(schema.get("scale", 0)), place=self.place)
        return LOGICAL.get((kind, str(name))) if self.logical else None

    def complex_type(self, kind: str, schema: Any) -> pa.DataType:
        if kind in self.named:
            if kind in self.open:
                raise FormatError(f"{self.place}: {kind} holds itself, and a column's type can't")
            return self.complex_type(self.named[kind]["type"], self.named[kind])
        if kind == "array":
            return pa.list_(self.field_of("item", schema["items"]))
        if kind == "map":
            return pa.map_(pa.string(), self.field_of("value", schema["values"]))
        self.named[schema["name"]] = schema
        if kind == "enum":
            return pa.string()
        if kind == "fixed":
            return self.logical_type(kind, schema) or pa.binary()
        self.open.append(schema["name"])
        fields = [self.field_of(field["name"], field["type"]) for field in schema["fields"]]
        self.open.pop()
        return struct_of(fields, place=f"{self.place}: {schema['name']}")


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name != "logicalType"}
    if schema.get("logicalType") == "decimal" and schema.get("type") in {"bytes", "fixed"}:
        kept["logicalType"] = OUR_DECIMAL
    for name in ("type", "items", "values"):
        if isinstance(kept.get(name), dict | list):
            kept[name] = _without_logical_types(kept[name])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [_without_logical_types(field) for field in kept["fields"]]
    return kept


def in_microseconds(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(arrow_type):
        return pa.timestamp("us", arrow_type.tz)
    if pa.types.is_list(arrow_type):
        return pa.list_(arrow_type.value_field.with_type(in_microseconds(arrow_type.value_type)))
    if pa.types.is_map(arrow_type):
        return pa.map_(pa.string(), arrow_type.item_field.with_type(in_microseconds(arrow_type.item_type)))
    if pa.types.is_struct(arrow_type):
        return pa.struct([field.with_type(in_microseconds(field.type)) for field in struct_fields(arrow_type)])
    return arrow_type


def avro_document_of(arrow_type: pa.DataType, *, name: str = TOP_NAME, place: str) -> Any:
    """The schema of a column's type, as Spark's to_avro would make it: what may be null is a union with null."""
    if arrow_type in TO_AVRO:
        return TO_AVRO[arrow_type]
    if arrow_type in (pa.large_string(), pa.large_binary()):
        return "string" if arrow_type == pa.large_string() else "bytes"
    if pa.types.is_timestamp(arrow_type):
        return {"type": "long", "logicalType": "timestamp-micros" if arrow_type.tz else "local-timestamp-micros"}
    if pa.types.is_decimal(arrow_type):
        digits = {"precision": arrow_type.precision, "scale": arrow_type.scale}
        return {"type": "bytes", "logicalType": "decimal", **digits}
    if pa.types.is_map(arrow_type) and arrow_type.key_type == pa.string():
        return {"type": "map", "values": _member(arrow_type.item_field, name=name, place=place)}
    if pa.types.is_list(arrow_type):
        return {"type": "array", "items": _member(arrow_type.value_field, name=name, place=place)}
    if pa.types.is_struct(arrow_type) and arrow_type.num_fields:
        fields = [
            {"name": _name(field.name, place=place), "type": _member(field, name=f"{name}_{field.name}", place=place)}
            for field in struct_fields(arrow_type)
        ]
        return {"type": "record", "name": name, "fields": fields}
    raise FormatError(f"{place}: Avro has no form for {spark_name(arrow_type)}")


def _member(field: pa.Field, *, name: str, place: str) -> Any:
    document = avro_document_of(field.type, name=name, place=place)
    return ["null", document] if field.nullable else document


def _name(name: str, *, place: str) -> str:
    if not NAME.fullmatch(name):
        raise FormatError(f"{place}: field {name!r}: Avro's names are letters, digits and _; rename the column")
    return name
