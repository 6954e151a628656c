"""Framed records as a typed column: each is read as its writer's schema says, and becomes what the reader's says."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from moldau.schemas.model import InvalidSchema, InvalidValue, ParsedSchema
from moldau.schemas.registry_client import RegistryError, SchemaText, StoredSchema
from moldau.schemas.subjects import QualifiedSubject
from moldau.spark.formats.interface import Decoded, Decoder, FormatError, as_binary
from moldau.spark.formats.registry.framed import Group, Written, taken_apart
from moldau.spark.formats.registry.options import SubjectOptions, client_of

READERS_MAX = 512  # of writers' schemas that a worker has met
UNKNOWN_S = 60.0  # a schema that the registry lacks is asked for again: it may be registered late


class UnknownWriter(Exception):
    """No record of this schema can be read; the message says why."""


@dataclass(frozen=True, slots=True)
class ReaderSchema:
    """What the columns are of; `stored` is None where a text was given and the registry is not asked."""

    schema: SchemaText
    stored: StoredSchema | None = None


@dataclass(frozen=True)
class RegistryDecoder:
    """For one side of a read. Picklable and small: what it has looked up is kept by the process."""

    options: SubjectOptions
    reader: ReaderSchema
    arrow_type: pa.DataType

    @property
    def reader_id(self) -> int | None:
        return None if self.reader.stored is None else self.reader.stored.id

    def decode(self, column: pa.BinaryArray) -> Decoded:
        return self.decode_framed(column, None)

    def decode_framed(self, column: pa.BinaryArray, headers: pa.Array | None) -> Decoded:
        """Ids in headers go before those in front of the payloads."""
        column, side = as_binary(column), self.options.side
        apart = taken_apart(column, headers, is_key=self.options.is_key, indexed=self.options.format == "protobuf")
        failures = {row: f"{side}: {reason}" for row, reason in apart.failures.items()}
        pieces: list[pa.Array] = []
        places = np.full(len(column), -1, np.int64)
        taken = 0
        for group in apart.groups:
            values = self._values(group, failures)
            if values is not None:
                places[group.rows] = np.arange(taken, taken + len(group.rows))
                pieces.append(values)
                taken += len(group.rows)
        return _put_back(pieces, places, failures, self.arrow_type)

    def _values(self, group: Group, failures: dict[int, str]) -> pa.Array | None:
        try:
            decoder = payload_decoder(self.options, self.reader, group.written)
        except UnknownWriter as unknown:
            failures.update((row, f"{self.options.side}: {unknown}") for row in group.rows.tolist())
            return None
        decoded = decoder.decode(group.payloads)
        if decoded.failed is not None:
            failed = np.flatnonzero(decoded.failed.to_numpy(zero_copy_only=False))
            failures.update(zip(group.rows[failed].tolist(), decoded.reasons, strict=True))
        return decoded.values


def _put_back(
    pieces: list[pa.Array],
    places: np.ndarray[tuple[int], np.dtype[np.int64]],
    failures: dict[int, str],
    kind: pa.DataType,
) -> Decoded:
    count = len(places)
    if len(pieces) == 1 and len(pieces[0]) == count:
        values = pieces[0]
    else:
        together = pa.concat_arrays(pieces) if pieces else pa.nulls(0, kind)
        values = together.take(pa.array(places, mask=places < 0))
    if not failures:
        return Decoded(values, failed=None, reasons=[])
    failed = np.zeros(count, np.bool_)
    failed[list(failures)] = True
    return Decoded(values, failed=pa.array(failed), reasons=[failures[row] for row in sorted(failures)])


def registry_decoder(options: SubjectOptions) -> RegistryDecoder:
    """Asks the registry for the reader's schema. Raises FormatError in its words, and what says that it is away."""
    reader = reader_schema(options)
    return RegistryDecoder(options, reader, _reading(options, reader).arrow_type)


def reader_schema(options: SubjectOptions) -> ReaderSchema:
    if options.text is not None:
        return ReaderSchema(SchemaText(options.type, options.text))
    client = client_of(options.login)
    try:
        if options.schema_id is not None:
            stored = client.by_id(options.schema_id, options.subject)
        else:
            stored = client.version(options.named(options.record_name), options.version)
    except RegistryError as refused:
        raise _as_format_error(refused) from None
    if stored.schema.type is not options.type:
        raise FormatError(
            f"option {options.side}Format = {options.format}: the schema of subject {stored.subject or ''} is "
            f"{stored.schema.type}, not {options.type}"
        )
    return ReaderSchema(stored.schema, stored)


def _as_format_error(refused: RegistryError) -> Exception:
    """What the registry refuses is the user's affair; that it does not answer may pass."""
    from moldau.schemas.registry_client import RegistryUnreachable

    return refused if isinstance(refused, RegistryUnreachable) else FormatError(str(refused))


def _reading(options: SubjectOptions, reader: ReaderSchema) -> Decoder:
    """The decoder of what the reader's schema itself wrote."""
    if options.format == "protobuf":
        return _protobuf_reader(options, reader)
    if options.format == "json":
        return _json_reader(options, reader)
    return _avro_reader(options, reader, None)


def payload_decoder(
    options: SubjectOptions, reader: ReaderSchema, written: Written, *, monotonic: Callable[[], float] = time.monotonic
) -> Decoder:
    """Raises UnknownWriter for records that nobody can read; what passes, such as a registry that is away, as it is."""
    found = _decoder_or_reason(options, reader, written, int(monotonic() // UNKNOWN_S))
    if isinstance(found, UnknownWriter):
        raise UnknownWriter(*found.args)
    return found


@lru_cache(maxsize=READERS_MAX)
def _decoder_or_reason(
    options: SubjectOptions, reader: ReaderSchema, written: Written, _period: int
) -> Decoder | UnknownWriter:
    """Reasons are kept too: a topic of other bytes would ask the registry with every batch."""
    try:
        return _decoder_of(options, reader, written)
    except UnknownWriter as unknown:
        return unknown


def _decoder_of(options: SubjectOptions, reader: ReaderSchema, written: Written) -> Decoder:
    client = client_of(options.login)
    try:
        stored = _stored(options, written)
        if stored.schema.type is not options.type:
            raise UnknownWriter(f"schema {written.schema} is {stored.schema.type}, not {options.type}")
        if options.format == "json":
            return _json_reader(options, reader)
        if options.format == "avro":
            same = stored.schema == reader.schema
            return _avro_reader(options, reader, None if same else stored.schema)
        parsed = client.parsed(stored.schema, _context(options))
        name = parsed.message_class(written.message).DESCRIPTOR.full_name  # type: ignore[attr-defined]
    except RegistryError as refused:
        if not refused.is_unknown:
            raise
        raise UnknownWriter(f"the registry has no schema {written.schema} ({refused.words})") from None
    except (InvalidSchema, InvalidValue) as wrong:
        raise UnknownWriter(f"schema {written.schema}: {wrong}") from None
    return _protobuf_of(options, reader, name)


def _stored(options: SubjectOptions, written: Written) -> StoredSchema:
    client = client_of(options.login)
    if isinstance(written.schema, int):
        return client.by_id(written.schema, options.subject)
    return client.by_guid(written.schema)


def _context(options: SubjectOptions) -> str:
    return QualifiedSubject.parse(options.subject or "").context


def _parsed(options: SubjectOptions, schema: SchemaText) -> ParsedSchema:
    try:
        return client_of(options.login).parsed(schema, _context(options))
    except InvalidSchema as wrong:
        raise FormatError(f"option {options.side}Format = {options.format}: {wrong}") from None


def _avro_reader(options: SubjectOptions, reader: ReaderSchema, writer: SchemaText | None) -> Decoder:
    from moldau.spark.formats.avro.decoder import AvroDecoder
    from moldau.spark.formats.avro.schema import parse_avro_schema, parse_writer

    place = f"the schema of option {options.side}Format"
    schema = parse_avro_schema(_parsed(options, reader.schema).formatted("resolved"), place=place)
    written = None if writer is None else parse_writer(_parsed(options, writer).formatted("resolved"))
    return AvroDecoder(schema, side=options.side, writer=written)


def _json_reader(options: SubjectOptions, reader: ReaderSchema) -> Decoder:
    from moldau.spark.formats.json.decoder import JsonDecoder
    from moldau.spark.formats.json.schema_types import arrow_type_of_schema

    references = client_of(options.login).references(reader.schema, _context(options))
    kind = arrow_type_of_schema(
        reader.schema.text, {one.name: one.text for one in references}, place=f"the schema of {options.side}Format"
    )
    return JsonDecoder(kind, side=options.side)


def _protobuf_reader(options: SubjectOptions, reader: ReaderSchema) -> Decoder:
    from moldau.spark.formats.protobuf.decoder import ProtobufDecoder

    parsed = _parsed(options, reader.schema)
    try:
        message = parsed.message_indexes(options.record_name) if options.record_name else ()  # type: ignore[attr-defined]
        found = parsed.message_class(message)  # type: ignore[attr-defined]
    except InvalidValue as wrong:
        raise FormatError(f"option {options.side}RecordName = {options.record_name!r}: {wrong}") from None
    return ProtobufDecoder(found, side=options.side)


def _protobuf_of(options: SubjectOptions, reader: ReaderSchema, written: str) -> Decoder:
    decoder = _protobuf_reader(options, reader)
    wanted = decoder.message.DESCRIPTOR.full_name  # type: ignore[attr-defined]
    if written != wanted:
        raise UnknownWriter(f"a message {written}, and the columns are of {wanted} (option {options.side}RecordName)")
    return decoder
