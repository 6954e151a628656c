"""What a user says about a registry: where it is and how to log in, and which subject a side's schemas are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from moldau.schemas.formats import parse
from moldau.schemas.model import InvalidSchema, SchemaType
from moldau.schemas.registry_client import RegistryClient, Settings
from moldau.schemas.subjects import SubjectNameStrategy
from moldau.spark.formats.interface import FormatError, Side, SideOptions
from moldau.spark.registry_names import (
    FAILS_INVALID,
    ID_SERIALIZER,
    LATEST,
    SCHEMA_ID,
    STRICT,
    TEXTS,
    TOPIC,
    USE_ID,
    Login,
    found,
    login_of,
    uses_registry,
)

FORMATS = {"avro": SchemaType.AVRO, "json": SchemaType.JSON, "protobuf": SchemaType.PROTOBUF}
# Where a record names its schema, as people say it and as Java's serializers call it.
IN_HEADER = {
    "prefix": False,
    "header": True,
    "io.confluent.kafka.serializers.schema.id.PrefixSchemaIdSerializer": False,
    "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer": True,
}
CLIENTS_MAX = 8
# A frame is made by the latest schema of that moment: Spark's planning processes live longer than that is true.
ALWAYS_ASKED = {"cache.latest.ttl.sec": "0"}


def check_login(options: Mapping[str, str]) -> None:
    """Raises FormatError for settings that no client of a registry can be made of; asks nobody."""
    registry_places(options)


def registry_places(options: Mapping[str, str]) -> list[tuple[str, int]]:
    """Host and port of each of its URLs. Raises FormatError."""
    try:
        settings = Settings.of(dict(login_of(options)))
    except ValueError as wrong:
        raise FormatError(str(wrong)) from None
    return [(endpoint.host, endpoint.port) for endpoint in settings.endpoints]


@lru_cache(maxsize=CLIENTS_MAX)
def client_of(login: Login) -> RegistryClient:
    """One for the life of a worker, with the schemas that it has met."""
    try:
        return RegistryClient({**ALWAYS_ASKED, **dict(login)})
    except ValueError as wrong:
        raise FormatError(str(wrong)) from None


@dataclass(frozen=True, slots=True)
class SubjectOptions:
    """Which schema of the registry is meant on one side."""

    side: Side
    format: str
    login: Login
    subject: str | None
    strategy: SubjectNameStrategy
    topic: str | None
    version: int | str
    record_name: str | None
    schema_id: int | None
    text: str | None
    normalizes: bool
    registers: bool
    uses_latest: bool
    writes_header: bool
    judges_rows: bool = True  # by a JSON Schema that was not made of the column

    @property
    def type(self) -> SchemaType:
        return FORMATS[self.format]

    @property
    def is_key(self) -> bool:
        return self.side == "key"

    def named(self, record_name: str | None) -> str:
        """The subject, if need be by the name of a record. Raises FormatError where nothing says it."""
        if self.subject:
            return self.subject
        strategy = self.strategy
        if strategy is not SubjectNameStrategy.RECORD_NAME and self.topic is None:
            raise FormatError(
                f"option {self.side}Subject is missing: with several topics it says which schema the columns are of"
            )
        if strategy is not SubjectNameStrategy.TOPIC_NAME and record_name is None:
            raise FormatError(f"option {self.side}RecordName is missing: {strategy} names subjects after it")
        return strategy.subject(self.topic or "", self.is_key, record_name)


def subject_options(format_name: str, options: SideOptions) -> SubjectOptions:
    """Raises FormatError; asks nobody."""
    check_login(options.options)
    name, side = format_name.strip().lower(), options.side
    if not _boolean(options.options, STRICT, default=True):
        raise FormatError(f"option {STRICT} = false is not supported: columns that do not fit the schema are refused")
    return SubjectOptions(
        side=side,
        format=name,
        login=login_of(options.options),
        subject=options.get("Subject") or None,
        strategy=_strategy(options),
        topic=options.get(TOPIC) or None,
        version=_version(options),
        record_name=options.get("RecordName") or None,
        schema_id=_schema_id(options, TEXTS[name]),
        text=options.get(TEXTS[name]),
        normalizes=_boolean(options.options, "normalize.schemas", default=False),
        registers=_boolean(options.options, "auto.register.schemas", default=True),
        uses_latest=_boolean(options.options, "use.latest.version", default=False),
        writes_header=_writes_header(options),
        judges_rows=_boolean(options.options, FAILS_INVALID, default=True),
    )


def check_text(options: SubjectOptions) -> None:
    """Raises FormatError for a schema that is given as text and is none; asks nobody."""
    if options.text is None:
        return
    try:
        parse(options.type, options.text)
    except InvalidSchema as wrong:
        raise FormatError(f"option {options.side}{TEXTS[options.format]} is no schema: {wrong}") from None


def _strategy(options: SideOptions) -> SubjectNameStrategy:
    text = options.get("SubjectNameStrategy") or found(options.options, f"{options.side}.subject.name.strategy")
    if not text:
        return SubjectNameStrategy.TOPIC_NAME
    try:
        return SubjectNameStrategy.named(text)
    except ValueError as wrong:
        raise FormatError(f"option {options.name_of('SubjectNameStrategy')}: {wrong}") from None


def _schema_id(options: SideOptions, text_name: str) -> int | None:
    """Of the frame or of the batch that runs again, or else the user's."""
    pinned = options.get(SCHEMA_ID)
    if pinned is not None:
        return int(pinned)
    own = f"{options.side}.{USE_ID}"
    name = own if found(options.options, own) else USE_ID
    text = found(options.options, name)
    if not text:
        return None
    if not text.isdecimal() or not text.isascii():
        raise FormatError(f"option {name} = {text!r}: allowed is the id of a schema, a whole number from 0")
    if name == USE_ID and _is_typed(options, "key") and _is_typed(options, "value"):
        raise FormatError(f"option {USE_ID}: key and value have schemas both; give key.{USE_ID} and value.{USE_ID}")
    others = [each for each in ("SchemaVersion", text_name) if options.get(each)]
    if others:
        raise FormatError(f"options {name} and {options.name_of(others[0])} exclude each other")
    if _boolean(options.options, "use.latest.version", default=False):
        raise FormatError(f"options {name} and use.latest.version exclude each other")
    return int(text)


def _is_typed(options: SideOptions, side: Side) -> bool:
    return uses_registry(SideOptions(side, options.options).get("Format") or "", options.options)


def _writes_header(options: SideOptions) -> bool:
    own = f"{options.side}.{ID_SERIALIZER}"
    name = own if found(options.options, own) else ID_SERIALIZER
    text = found(options.options, name)
    if text and text not in IN_HEADER:
        raise FormatError(f"option {name} = {text!r}: allowed are prefix and header")
    return bool(text) and IN_HEADER[text]


def _version(options: SideOptions) -> int | str:
    text = options.get("SchemaVersion") or LATEST
    if text.lower() == LATEST:
        return LATEST
    if not text.isdigit() or not int(text):
        name = options.name_of("SchemaVersion")
        raise FormatError(f"option {name} = {text!r}: allowed are {LATEST} and the numbers of versions, from 1 on")
    return int(text)


def _boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = found(options, name)
    if text.lower() not in ("", "true", "false"):
        raise FormatError(f"option {name} = {text!r}: allowed are true and false")
    return text.lower() == "true" if text else default
