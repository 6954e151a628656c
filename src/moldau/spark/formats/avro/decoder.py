"""Avro records (the plain binary form, one datum each) to a typed Arrow column."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.read import SchemaResolutionError

from moldau.spark.formats.avro.explain import explain
from moldau.spark.formats.avro.schema import AvroSchema
from moldau.spark.formats.interface import Decoded, Misfit, Side, as_binary, decoded_rows

# Whatever the library's reader says about bytes that are not a record of the schema.
UNREADABLE = (
    EOFError, IndexError, KeyError, TypeError, ValueError, OverflowError, StopIteration, MemoryError, RecursionError,
    SchemaResolutionError, pa.ArrowException,
)  # fmt: skip


@dataclass(frozen=True)
class AvroDecoder:
    """Reads by `schema`; with `writer`, bytes of that schema are resolved to it by Avro's rules of evolution."""

    schema: AvroSchema
    side: Side
    writer: Any = None  # as `parse_writer` has it

    @property
    def arrow_type(self) -> pa.DataType:
        return self.schema.arrow_type

    def decode(self, column: pa.BinaryArray) -> Decoded:
        data = as_binary(column).to_pylist()
        failures: dict[int, str] = {}
        records: list[Any] = []
        for row, datum in enumerate(data):
            try:
                records.append(None if datum is None else self.read(datum))
            except Misfit as misfit:
                failures[row] = f"{self.side}: {misfit}"
                records.append(None)
        try:
            values = self.to_arrow(records)
        except UNREADABLE:
            # Numbers beyond their type are read without complaint, and only Arrow minds: find whose they are.
            failures |= self.blank_what_arrow_refuses(records, data)
            values = self.to_arrow(records)
        return decoded_rows(values, failures=failures)

    def read(self, datum: bytes) -> Any:
        stream = io.BytesIO(datum)
        parsed = self.schema.parsed
        written = parsed if self.writer is None else self.writer
        try:
            record = fastavro.schemaless_reader(stream, written, None if self.writer is None else parsed)
        except SchemaResolutionError as wrong:
            raise Misfit(f"its schema does not resolve to the columns': {str(wrong) or 'no reason given'}") from None
        except UNREADABLE:
            raise explain(datum, written) from None
        if stream.tell() != len(datum):
            raise explain(datum, written)
        return record

    def to_arrow(self, records: list[Any]) -> pa.Array:
        counted = pa.array(records, self.schema.stored_type)
        if self.schema.counted_type != self.schema.stored_type:
            counted = counted.cast(self.schema.counted_type)
        return counted if counted.type == self.schema.arrow_type else counted.cast(self.schema.arrow_type)

    def blank_what_arrow_refuses(self, records: list[Any], data: list[bytes | None]) -> dict[int, str]:
        refused: dict[int, str] = {}
        for row, record in enumerate(records):
            try:
                self.to_arrow([record])
            except UNREADABLE as error:
                misfit = explain(data[row] or b"", self.schema.parsed if self.writer is None else self.writer)
                vague = misfit.message == "not an Avro record of this schema"
                refused[row] = f"{self.side}: {error if vague else misfit}"
                records[row] = None
        return refused
