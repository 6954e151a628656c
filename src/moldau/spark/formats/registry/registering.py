"""What a write does at the registry, on the driver and before any task: find or register the schema of each side."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from moldau.schemas.framing import write_id
from moldau.schemas.model import InvalidSchema, InvalidValue, ParsedSchema, ReferencedText
from moldau.schemas.registry_client import RegistryClient, RegistryError, RegistryUnreachable, SchemaText, StoredSchema
from moldau.schemas.subjects import QualifiedSubject
from moldau.spark.formats.interface import FormatError, SideOptions
from moldau.spark.formats.registry.derived import derived_schema
from moldau.spark.formats.registry.encoder import json_texts, payload_encoder
from moldau.spark.formats.registry.options import SubjectOptions, client_of, subject_options
from moldau.spark.registry_names import ID_SERIALIZER, WRITTEN_HEADER, WRITTEN_ID, WRITTEN_PREFIX, WRITTEN_SCHEMA

# Rules about values, which no type of a column tells: each row is judged by them when it is written. That columns of
# Spark may nearly always be null, is one of these too.
ABOUT_VALUES = (
    "REQUIRED_ATTRIBUTE_",
    "MAX_",
    "MAXIMUM_",
    "MIN_",
    "MINIMUM_",
    "EXCLUSIVE_",
    "MULTIPLE_OF_",
    "PATTERN_",
    "ENUM_ARRAY_",
    "UNIQUE_ITEMS_",
    "DEPENDENCY_",
)
REASONS_MAX = 3
CIRCUMSTANCES = (
    "{oldSchema",
    "{validateFields",
    "{compatibility",
)  # beside the reasons: with what it was compared, and how


def registered(format_name: str, side: SideOptions, arrow_type: pa.DataType) -> dict[str, str]:
    """What tasks have to know beside the options. Raises FormatError, with the registry's words where it refuses."""
    options = subject_options(format_name, side)
    client = client_of(options.login)
    try:
        if options.schema_id is not None:
            stored = client.by_id(options.schema_id, options.subject)
            _check_type(stored, options)
        elif options.uses_latest:
            stored = client.version(options.named(options.record_name), options.version)
            _check_type(stored, options)
        else:
            schema = written_schema(options, arrow_type)
            subject = options.named(options.record_name or client.parsed(schema).record_name)
            put = client.register if options.registers else client.lookup
            stored = put(subject, schema, normalize=options.normalizes)
        return _for_tasks(client, stored, side, options, arrow_type)
    except RegistryUnreachable:
        raise
    except (RegistryError, InvalidSchema, InvalidValue) as refused:
        raise FormatError(f"column {options.side}: {refused}") from None


def check_registrable(format_name: str, side: SideOptions, arrow_type: pa.DataType) -> None:
    """Whether `registered` would do, asked without registering anything."""
    options = subject_options(format_name, side)
    client = client_of(options.login)
    try:
        if options.schema_id is not None or options.uses_latest or not options.registers:
            registered(format_name, side, arrow_type)
            return
        schema = written_schema(options, arrow_type)
        subject = options.named(options.record_name or client.parsed(schema).record_name)
        verdict = client.compatibility(subject, schema, None, normalize=options.normalizes)
    except RegistryUnreachable:
        raise
    except (RegistryError, InvalidSchema, InvalidValue) as refused:
        if isinstance(refused, RegistryError) and refused.is_unknown:
            return  # a subject that is new takes any schema
        raise FormatError(f"column {options.side}: {refused}") from None
    if not verdict.compatible:
        told = [one for one in verdict.messages if not one.startswith(CIRCUMSTANCES)]
        reasons = "; ".join(told[:REASONS_MAX]) or "no reason given"
        more = len(told) - REASONS_MAX
        reasons += f"; and {more} more" if more > 0 else ""
        raise FormatError(f"column {options.side}: the registry would refuse its schema for {subject}: {reasons}")


def written_schema(options: SubjectOptions, arrow_type: pa.DataType) -> SchemaText:
    """As the user gives it, or of the column's type."""
    if options.text is not None:
        return SchemaText(options.type, options.text)
    return SchemaText(options.type, derived_schema(options, arrow_type, known=_known(options)))


def _known(options: SubjectOptions) -> ParsedSchema | None:
    """The subject's latest schema, if there is one and the record's name is not needed to find it."""
    client = client_of(options.login)
    try:
        stored = client.version(options.named(options.record_name))
        return client.parsed(stored.schema) if stored.schema.type is options.type else None
    except FormatError:
        return None  # the strategy needs the name of the record, which is about to be made
    except RegistryError as refused:
        if refused.is_unknown:
            return None
        raise


def _check_type(stored: StoredSchema, options: SubjectOptions) -> None:
    if stored.schema.type is not options.type:
        raise FormatError(
            f"option {options.side}Format = {options.format}: schema {stored.id} of subject {stored.subject or ''} is "
            f"{stored.schema.type}, not {options.type}"
        )


def _for_tasks(
    client: RegistryClient, stored: StoredSchema, side: SideOptions, options: SubjectOptions, arrow_type: pa.DataType
) -> dict[str, str]:
    assert stored.id is not None, "a schema that is registered has an id"
    parsed = client.parsed(stored.schema)
    written, message, extra = "", (), {}
    if options.format == "avro":
        written = parsed.formatted("resolved")
    elif options.format == "protobuf":
        name = options.record_name or parsed.record_name or ""
        message = parsed.message_indexes(name)  # type: ignore[attr-defined]
        full_name = parsed.message_class(message).DESCRIPTOR.full_name  # type: ignore[attr-defined]
        written = base64.b64encode(parsed.files.SerializeToString()).decode()  # type: ignore[attr-defined]
        extra = {side.name_of("RecordName"): full_name}
    elif _is_given(options):  # of the column's own schema all rules are about shape
        context = QualifiedSubject.parse(options.subject or "").context
        references = client.references(stored.schema, context)
        _check_shape(stored.schema.text, references, options, arrow_type)
        written = json_texts(stored.schema.text, references) if options.judges_rows else ""
    made = {WRITTEN_SCHEMA: written, WRITTEN_ID: str(stored.id), **_named_by(client, stored, options, message)}
    told = {**{side.name_of(name): value for name, value in made.items()}, **extra}
    named: Mapping[str, str] = {**side.options, **extra}
    payload_encoder(options.format, written, SideOptions(options.side, named)).check(arrow_type)
    return told


def _named_by(
    client: RegistryClient, stored: StoredSchema, options: SubjectOptions, message: tuple[int, ...]
) -> dict[str, str]:
    """What says in each record which schema wrote it; in headers that is a GUID, as with Confluent's serializers."""
    assert stored.id is not None, "a schema that is registered has an id"
    if not options.writes_header:
        return {WRITTEN_PREFIX: write_id(stored.id, message).hex()}
    guid = stored.guid or client.by_id(stored.id, options.subject or stored.subject).guid
    if guid is None:
        raise FormatError(
            f"option {ID_SERIALIZER} = header: the registry at {client.url} gives schemas no GUIDs; Confluent's does "
            "from 8.0 on"
        )
    return {WRITTEN_PREFIX: "", WRITTEN_HEADER: write_id(guid, message).hex()}


def _is_given(options: SubjectOptions) -> bool:
    """Whether the schema is the user's, or the subject's, and not made of the column."""
    return options.text is not None or options.uses_latest or options.schema_id is not None


def _check_shape(
    text: str, references: Sequence[ReferencedText], options: SubjectOptions, arrow_type: pa.DataType
) -> None:
    """Whether who reads by a schema of the user's, or the subject's, can read what the column's own would write."""
    from moldau.schemas import formats

    own = formats.parse(options.type, derived_schema(options, arrow_type, known=None))
    shape = formats.parse(options.type, json.dumps(_without_enums(json.loads(text))), references)
    wrong = [one for one in shape.incompatibilities(own) if not one.kind.startswith(ABOUT_VALUES)]
    if wrong:
        first = wrong[0]
        raise FormatError(
            f"column {options.side} does not fit the schema: {first.kind} at {first.path}: {first.description}"
        )


def _without_enums(schema: Any) -> Any:
    """What a schema says but for lists of the values that are allowed: to the comparison they are types."""
    if isinstance(schema, list):
        return [_without_enums(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    # Under these names a schema may have a property too, which is an object.
    values = [name for name in ("enum", "const") if not isinstance(schema.get(name), dict)]
    return {name: _without_enums(value) for name, value in schema.items() if name not in values}
