"""Keys and values of raw batches turned into typed columns, and the records that don't fit set aside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DataType, StructType

from moldau.spark.columns import HEADERS, RAW_SCHEMA
from moldau.spark.dead_letters.letters import Letter
from moldau.spark.formats import DEFAULT_FORMAT, Decoded, Decoder, Side, decoder_of, json_decoder, wants_inference
from moldau.spark.formats.interface import FramedDecoder
from moldau.spark.formats.schema_text import from_spark_json
from moldau.spark.option_values import OptionError
from moldau.spark.registry_names import SCHEMA_ID

SIDES: tuple[Side, ...] = ("key", "value")
# What a letter keeps of a record; all of it is read where letters are written.
LETTER_COLUMNS = ("offset", "timestamp", "key", "value", HEADERS)


@dataclass(frozen=True, slots=True)
class Typed:
    """The rows that fit, in the columns that were asked for, and the records that don't fit."""

    batch: pa.RecordBatch
    rejected: list[Letter]


@dataclass(frozen=True)
class RecordFormats:
    """How the records of a read become rows; `decoders` has only the sides whose format is not binary."""

    columns: tuple[str, ...]
    decoders: Mapping[str, Decoder]

    def raw_columns(self, *, keeps_letters: bool) -> tuple[str, ...]:
        """What has to be read of the records."""
        if not self.decoders:
            return self.columns
        needed = LETTER_COLUMNS if keeps_letters else ("offset",)
        if any(isinstance(decoder, FramedDecoder) for decoder in self.decoders.values()):
            needed = (*needed, HEADERS)
        needed = tuple(dict.fromkeys((*needed, *self.decoders)))
        return (*self.columns, *(name for name in needed if name not in self.columns))

    def decode(self, raw: pa.RecordBatch) -> Typed:
        """Every record once: in the rows, or with the first reason why not."""
        reasons: dict[int, str] = {}
        typed: dict[str, pa.Array] = {}
        for name, decoder in self.decoders.items():
            decoded = _decoded(decoder, raw, name)
            typed[name] = decoded.values
            if decoded.failed is not None:
                rows = np.flatnonzero(decoded.failed.to_numpy(zero_copy_only=False)).tolist()
                for row, reason in zip(rows, decoded.reasons, strict=True):
                    reasons.setdefault(row, reason)
        arrays = [typed.get(name, raw.column(name)) for name in self.columns]
        fields = [pa.field(name, array.type) for name, array in zip(self.columns, arrays, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
        if not reasons:
            return Typed(batch, [])
        fits = pa.array([row not in reasons for row in range(raw.num_rows)], pa.bool_())
        return Typed(batch.filter(fits), [letter_of(raw, row, reasons[row]) for row in sorted(reasons)])


def _decoded(decoder: Decoder, raw: pa.RecordBatch, name: str) -> Decoded:
    if isinstance(decoder, FramedDecoder):
        return decoder.decode_framed(raw.column(name), raw.column(HEADERS))
    return decoder.decode(raw.column(name))


def letter_of(raw: pa.RecordBatch, row: int, reason: str) -> Letter:
    """A record of a raw batch; columns that were not read stay empty."""
    record = {name: raw.column(name)[row] for name in LETTER_COLUMNS if name in raw.schema.names}
    timestamp = record["timestamp"].value if "timestamp" in record else None
    headers = record[HEADERS].as_py() if HEADERS in record else None
    return Letter(
        offset=record["offset"].as_py(),
        timestamp_ms=-1 if timestamp is None else timestamp // 1000,
        key=record["key"].as_py() if "key" in record else None,
        value=record["value"].as_py() if "value" in record else None,
        headers=[(header["key"], header["value"]) for header in headers or []],
        reason=reason,
    )


def format_name(options: Mapping[str, str], side: Side) -> str:
    return next((value for name, value in options.items() if name.lower() == f"{side}format"), DEFAULT_FORMAT)


def sides_to_infer(options: Mapping[str, str]) -> list[Side]:
    return [side for side in SIDES if wants_inference(format_name(options, side), options, side=side)]


def record_formats(schema: StructType, options: Mapping[str, str]) -> RecordFormats:
    """The decoders of a read with this schema: what was inferred, or what the user asked for, is in the schema."""
    decoders: dict[str, Decoder] = {}
    options = pinned(schema, options)
    for side in SIDES:
        name = format_name(options, side)
        inferred = wants_inference(name, options, side=side)
        if side not in schema.names or name.lower() == DEFAULT_FORMAT:
            continue
        asked = arrow_type_of(schema[side].dataType, column=side)
        decoders[side] = json_decoder(asked, side=side) if inferred else decoder_of(name, options, side=side)
    return RecordFormats(columns=tuple(schema.names), decoders=decoders)


def pinned(schema: StructType, options: Mapping[str, str]) -> Mapping[str, str]:
    """With the ids of the schemas that the columns were made of, wherever a later version has become the latest."""
    ids = {
        f"{side}{SCHEMA_ID}": str(schema[side].metadata[SCHEMA_ID])
        for side in SIDES
        if side in schema.names and SCHEMA_ID in (schema[side].metadata or {})
    }
    return {**options, **ids} if ids else options


def arrow_type_of(data_type: DataType, *, column: str) -> pa.DataType:
    """Our parser of Spark's JSON instead of Spark's own conversion, so that a schema has one meaning everywhere."""
    return from_spark_json(json.loads(data_type.json()), place=f"column {column}")


def typed_schema(raw: StructType, types: Mapping[str, pa.DataType], ids: Mapping[str, int]) -> StructType:
    """The columns of a read, with the types of the decoded ones; `ids` are of schemas that a registry has."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField

    return StructType(
        [
            StructField(
                field.name,
                from_arrow_type(types[field.name]),
                metadata={SCHEMA_ID: ids[field.name]} if field.name in ids else None,
            )
            if field.name in types
            else field
            for field in raw.fields
        ]
    )


def sides_decoders(options: Mapping[str, str], inferred: Mapping[Side, pa.DataType]) -> dict[str, Decoder]:
    """Of the sides whose format is not binary, by the options or by what was inferred."""
    decoders: dict[str, Decoder] = {}
    for side in SIDES:
        name = format_name(options, side)
        if side in inferred:
            decoders[side] = json_decoder(inferred[side], side=side)
        elif name.lower() != DEFAULT_FORMAT:
            decoders[side] = decoder_of(name, options, side=side)
    return decoders


def check_asked(schema: StructType, known: StructType) -> None:
    """A schema that the user gave may have fewer columns than there are, never others."""
    for field in schema.fields:
        if field.name not in RAW_SCHEMA.names:
            raise OptionError(f"column {field.name!r} is not one of {', '.join(RAW_SCHEMA.names)}")
        if field.name in known.names and known[field.name].dataType != field.dataType:
            raise OptionError(
                f"column {field.name!r} is {known[field.name].dataType.simpleString()}, "
                f"and the schema asks for {field.dataType.simpleString()}"
            )
