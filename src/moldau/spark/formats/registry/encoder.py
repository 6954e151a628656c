"""A typed column to framed records: an id that was registered before any task ran, then the payload."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from moldau.schemas.framing import header_name
from moldau.schemas.model import InvalidValue, ParsedSchema, ReferencedText, SchemaType
from moldau.spark.formats.interface import Encoder, EncodingFailed, FormatError, Side, SideOptions, as_binary
from moldau.spark.formats.json.encoder import JsonEncoder
from moldau.spark.formats.registry.derived import derived_schema
from moldau.spark.formats.registry.options import SubjectOptions, subject_options
from moldau.spark.registry_names import WRITTEN_HEADER, WRITTEN_PREFIX, WRITTEN_SCHEMA

SCHEMAS_MAX = 16


@dataclass(frozen=True)
class RegistryEncoder:
    """Tasks have this one: they ask no registry and need no login."""

    prefix: bytes  # empty where the id goes into a header
    payloads: Encoder
    header: tuple[str, bytes] | None = None

    def check(self, arrow_type: pa.DataType) -> None:
        self.payloads.check(arrow_type)

    def encode(self, column: pa.Array) -> pa.BinaryArray:
        payloads = as_binary(self.payloads.encode(column))
        # What is null stays null: a tombstone has no schema.
        return pc.binary_join_element_wise(pa.scalar(self.prefix, pa.binary()), payloads, pa.scalar(b"", pa.binary()))


@dataclass(frozen=True)
class UnregisteredEncoder:
    """What the driver judges a frame by before anything is registered."""

    options: SubjectOptions

    def check(self, arrow_type: pa.DataType) -> None:
        options = self.options
        if options.format == "json":
            JsonEncoder(options.side).check(arrow_type)
        if options.text is None and options.schema_id is None and not options.uses_latest:
            derived_schema(options, arrow_type, known=None)

    def encode(self, column: pa.Array) -> pa.BinaryArray:
        raise FormatError(f"column {self.options.side}: its schema was not registered, {len(column)} rows wait for it")


@dataclass(frozen=True)
class ValidatingEncoder:
    """JSON by a schema that was not made of the column: it may have rules about values, and require what is null."""

    written: str
    side: Side

    def check(self, arrow_type: pa.DataType) -> None:
        JsonEncoder(self.side).check(arrow_type)

    def encode(self, column: pa.Array) -> pa.Array:
        payloads = as_binary(JsonEncoder(self.side).encode(column))
        schema = _json_schema(self.written)
        for row, payload in enumerate(payloads.to_pylist()):
            try:
                if payload is not None:
                    schema.decode(payload)
            except InvalidValue as wrong:
                raise EncodingFailed(f"{self.side}: row {row}: it does not fit the schema: {wrong}") from None
        return payloads


def json_texts(text: str, references: Iterable[ReferencedText]) -> str:
    return json.dumps([text, [[one.name, one.text] for one in references]])


@lru_cache(maxsize=SCHEMAS_MAX)
def _json_schema(written: str) -> ParsedSchema:
    from moldau.schemas import formats

    text, references = json.loads(written)
    return formats.parse(SchemaType.JSON, text, [ReferencedText(*one) for one in references])


def registry_encoder(format_name: str, options: SideOptions) -> Encoder:
    prefix = options.get(WRITTEN_PREFIX)
    if prefix is None:
        return UnregisteredEncoder(subject_options(format_name, options))
    payloads = payload_encoder(format_name.strip().lower(), options.get(WRITTEN_SCHEMA) or "", options)
    told = bytes.fromhex(options.get(WRITTEN_HEADER) or "")
    header = (header_name(options.side == "key"), told) if told else None
    return RegistryEncoder(bytes.fromhex(prefix), payloads, header)


def payload_encoder(format_name: str, written: str, options: SideOptions) -> Encoder:
    """`written` is Avro's text with all that it refers to, Protobuf's descriptors in base64, or JSON's texts."""
    if format_name == "json":
        return ValidatingEncoder(written, options.side) if written else JsonEncoder(options.side)
    if format_name == "protobuf":
        from moldau.spark.formats.protobuf.descriptors import message_of
        from moldau.spark.formats.protobuf.encoder import ProtobufEncoder

        return ProtobufEncoder(message_of(written, options.get("RecordName") or ""), options.side)
    from moldau.spark.formats.avro.encoder import AvroEncoder
    from moldau.spark.formats.avro.schema import parse_avro_schema

    return AvroEncoder(parse_avro_schema(written, place=f"the schema of {options.name_of('Format')}"), options.side)
