"""Names of options about registries. Every Python process of Spark reads these: nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Mapping

URL = "schema.registry.url"
PREFIX = "schema.registry."
# Serializers in Java have these without the prefix.
BARE_PREFIXES = ("basic.auth.", "bearer.auth.")
# Of each side. A schema that is given as text goes before the subject's.
TEXTS = {"avro": "AvroSchema", "json": "JsonSchema", "protobuf": "ProtobufSchema"}
SIDE_OPTIONS = ("Subject", "SubjectNameStrategy", "SchemaVersion", "RecordName", "JsonSchema", "ProtobufSchema")
USE_ID = "use.schema.id"
FAILS_INVALID = "json.fail.invalid.schema"
STRICT = "latest.compatibility.strict"
SHARED_OPTIONS = ("auto.register.schemas", "use.latest.version", "normalize.schemas", USE_ID, FAILS_INVALID, STRICT)
STRATEGIES = ("key.subject.name.strategy", "value.subject.name.strategy")  # by Confluent's names
ID_SERIALIZER = "schema.id.serializer"
# What is added to the options on their way to the tasks; nobody sets these.
TOPIC = "RegistryTopic"
SCHEMA_ID = "RegistrySchemaId"
WRITTEN_SCHEMA = "RegistryWrittenSchema"
WRITTEN_PREFIX = "RegistryWrittenPrefix"
WRITTEN_HEADER = "RegistryWrittenHeader"
WRITTEN_ID = "RegistryWrittenId"
ALL = (
    URL,
    *(f"{side}{name}" for side in ("key", "value") for name in (*SIDE_OPTIONS, SCHEMA_ID)),
    *SHARED_OPTIONS,
    *STRATEGIES,
    ID_SERIALIZER,
    *(f"{side}.{name}" for side in ("key", "value") for name in (ID_SERIALIZER, USE_ID)),
)
LATEST = "latest"

Login = tuple[tuple[str, str], ...]


def is_about_registries(name: str) -> bool:
    return name.lower().startswith((PREFIX, *BARE_PREFIXES))


def uses_registry(format_name: str, options: Mapping[str, str]) -> bool:
    """An empty URL is none: one source of a pipeline may go without the registry of the others."""
    return format_name.strip().lower() in TEXTS and bool(found(options, URL))


def login_of(options: Mapping[str, str]) -> Login:
    """All that reaches the registry, by Confluent's names."""
    given = {name.lower(): value for name, value in options.items() if is_about_registries(name)}
    return tuple(sorted((name.removeprefix(PREFIX), value) for name, value in given.items()))


def found(options: Mapping[str, str], name: str) -> str:
    return next((value.strip() for key, value in options.items() if key.lower() == name), "")
