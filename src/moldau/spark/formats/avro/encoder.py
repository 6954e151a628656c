"""A typed Arrow column to Avro records, one datum each, by a given schema or by the column's own."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.validation import ValidationError, validate

from moldau.spark.formats.avro.decoder import UNREADABLE
from moldau.spark.formats.avro.schema import AvroSchema, avro_document_of, avro_schema_of
from moldau.spark.formats.interface import EncodingFailed, FormatError, Side, flat_offsets
from moldau.spark.formats.type_names import spark_name, struct_fields


@dataclass(frozen=True)
class AvroEncoder:
    schema: AvroSchema | None
    side: Side

    def check(self, arrow_type: pa.DataType) -> None:
        schema = self.schema_for(arrow_type)
        try:
            aligned(pa.nulls(0, arrow_type), schema.counted_type, schema.stored_type)
        except (FormatError, pa.ArrowException) as error:
            raise FormatError(f"column {self.side} does not fit {self.side}AvroSchema: {error}") from None

    def encode(self, column: pa.Array) -> pa.BinaryArray:
        schema = self.schema_for(column.type)
        try:
            records = aligned(column, schema.counted_type, schema.stored_type).to_pylist()
        except pa.ArrowInvalid:
            records = [self.alone(column, schema, row=row) for row in range(len(column))]
        return pa.array([self.write(record, schema, row=row) for row, record in enumerate(records)], pa.binary())

    def schema_for(self, arrow_type: pa.DataType) -> AvroSchema:
        return self.schema or derived_schema(arrow_type, f"column {self.side}")

    def alone(self, column: pa.Array, schema: AvroSchema, *, row: int) -> Any:
        try:
            return aligned(column.slice(row, 1), schema.counted_type, schema.stored_type).to_pylist()[0]
        except pa.ArrowInvalid as error:
            raise EncodingFailed(f"{self.side}: row {row}: {error}") from None

    def write(self, record: Any, schema: AvroSchema, *, row: int) -> bytes | None:
        if record is None:
            return None
        stream = io.BytesIO()
        try:
            fastavro.schemaless_writer(stream, schema.parsed, _entries_as_dicts(record, schema.stored_type))
        except UNREADABLE as error:
            raise EncodingFailed(f"{self.side}: row {row}: {self.reason(record, schema, error)}") from None
        return stream.getvalue()

    def reason(self, record: Any, schema: AvroSchema, error: BaseException) -> str:
        try:
            validate(_entries_as_dicts(record, schema.stored_type), schema.parsed, strict=False)
        except ValidationError as found:
            return "; ".join(str(each).strip() for each in found.errors)
        return str(error)


@lru_cache(maxsize=64)
def derived_schema(arrow_type: pa.DataType, place: str) -> AvroSchema:
    return avro_schema_of(avro_document_of(arrow_type, place=place), place=place)


def aligned(column: pa.Array, counted: pa.DataType, stored: pa.DataType) -> pa.Array:
    """The column as the numbers that will be in the bytes, its fields by name in the schema's order."""
    if pa.types.is_struct(counted) and pa.types.is_struct(column.type):
        return _aligned_struct(column, counted, stored)
    if pa.types.is_map(counted) and pa.types.is_map(column.type):
        return _aligned_map(column, counted, stored)
    if pa.types.is_list(counted) and pa.types.is_list(column.type):
        elements = aligned(column.flatten(), counted.value_type, stored.value_type)
        mask = column.is_null() if column.null_count else None
        return pa.ListArray.from_arrays(flat_offsets(column), elements, mask=mask)
    if pa.types.is_nested(counted) or pa.types.is_nested(column.type):
        raise FormatError(f"{spark_name(column.type)} does not fit {spark_name(counted)}")
    return column.cast(counted).cast(stored)


def _aligned_struct(column: pa.StructArray, counted: pa.StructType, stored: pa.StructType) -> pa.StructArray:
    given = dict(zip((field.name for field in struct_fields(column.type)), column.flatten(), strict=True))
    wanted = struct_fields(counted)
    extra = sorted(given.keys() - {field.name for field in wanted})
    if extra:
        raise FormatError(f"field {extra[0]} is not in the schema")
    arrays = []
    for field, stored_field in zip(wanted, struct_fields(stored), strict=True):
        if field.name not in given and not field.nullable:
            raise FormatError(f"field {field.name} of the schema is missing")
        values = given.get(field.name, pa.nulls(len(column), stored_field.type))
        try:
            arrays.append(aligned(values, field.type, stored_field.type))
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"field {field.name}: {error}") from None
        except (FormatError, pa.ArrowException) as error:
            raise FormatError(f"field {field.name}: {error}") from None
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(arrays, names=[field.name for field in wanted], mask=mask)


def _aligned_map(column: pa.MapArray, counted: pa.MapType, stored: pa.MapType) -> pa.ListArray:
    """As lists of entries: that is how Python gets a map from Arrow anyway."""
    entry = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
    entries = column.cast(pa.list_(entry)).flatten()
    items = aligned(entries.field("value"), counted.item_type, stored.item_type)
    pairs = pa.StructArray.from_arrays([entries.field("key").cast(pa.string()), items], names=["key", "value"])
    mask = column.is_null() if column.null_count else None
    return pa.ListArray.from_arrays(flat_offsets(column), pairs, mask=mask)


def _entries_as_dicts(record: Any, stored: pa.DataType) -> Any:
    """Maps come out of Arrow as lists of entries, and the writer wants dictionaries."""
    if record is None or not pa.types.is_nested(stored):
        return record
    if pa.types.is_map(stored):
        return {entry["key"]: _entries_as_dicts(entry["value"], stored.item_type) for entry in record}
    if pa.types.is_list(stored):
        return [_entries_as_dicts(element, stored.value_type) for element in record]
    return {field.name: _entries_as_dicts(record[field.name], field.type) for field in struct_fields(stored)}
