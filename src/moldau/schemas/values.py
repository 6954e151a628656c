"""Keys and values of records by the schemas of a registry: bytes as Confluent's serializers frame them, and JSON.

reader = ValueReader(client)
reader.read("orders", False, payload, headers)          {"id": "A-1", "total": 12.5}

writer = ValueWriter(client, Writing(use_latest_version=True))
payload, headers = writer.write("orders", False, {"id": "A-1", "total": 12.5})
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import UUID

from moldau.schemas.framing import FIRST_MESSAGE, Headers, header_name, read_frame, write_id
from moldau.schemas.model import InvalidSchema, InvalidValue, Json, ParsedSchema, SchemaType
from moldau.schemas.registry_client.answers import SchemaText, StoredSchema
from moldau.schemas.registry_client.cache import Cache
from moldau.schemas.registry_client.client import RegistryClient
from moldau.schemas.registry_client.errors import RegistryError
from moldau.schemas.subjects import DEFAULT_CONTEXT, QualifiedSubject, SubjectNameStrategy

# A topic of records with an id that nobody knows does not become as many questions to the registry.
UNKNOWN_VALID_S = 10.0
UNKNOWN_MAX = 1000


@dataclass(frozen=True, slots=True)
class Opened:
    """A payload and the schema that wrote it."""

    id: int | UUID
    schema: ParsedSchema
    message: tuple[int, ...]
    payload: bytes

    def decode(self) -> Json:
        return self.schema.decode(self.payload, self.message)


class ValueReader:
    """Reads either form of framing. Any number of threads may use one."""

    def __init__(
        self,
        client: RegistryClient,
        *,
        context: str = DEFAULT_CONTEXT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._context = context
        self._unknown: Cache[int | UUID, str] = Cache(UNKNOWN_MAX, UNKNOWN_VALID_S, monotonic=monotonic)

    def read(self, topic: str, is_key: bool, payload: bytes | None, headers: Headers = ()) -> Json:
        """The JSON form; None of no payload. Raises InvalidValue, and RegistryError if the registry fails."""
        return None if payload is None else self.open(topic, is_key, payload, headers).decode()

    def open(self, topic: str, is_key: bool, payload: bytes, headers: Headers = ()) -> Opened:
        """The schema of a payload, which is not decoded yet. Raises InvalidValue and RegistryError."""
        frame = read_frame(payload, is_key, headers)
        schema = self._schema(frame.schema, f"the {'key' if is_key else 'value'} of topic {topic}")
        message, content = frame.content(indexed=schema.type is SchemaType.PROTOBUF)
        return Opened(frame.schema, schema, message, content)

    def _schema(self, id: int | UUID, where: str) -> ParsedSchema:
        unknown = self._unknown.get(id)
        if unknown is None:
            try:
                return self._client.parsed(self._stored(id).schema, self._context)
            except RegistryError as refused:
                if not refused.is_unknown:
                    raise
                unknown = str(refused)
            except InvalidSchema as wrong:
                unknown = str(wrong)
            self._unknown.put(id, unknown)
        kind = "GUID" if isinstance(id, UUID) else "id"
        raise InvalidValue(f"{where} was written by the schema of {kind} {id}, which can't be had: {unknown}")

    def _stored(self, id: int | UUID) -> StoredSchema:
        if isinstance(id, UUID):
            return self._client.by_guid(id)
        # Without a subject an id is one of the default context.
        elsewhere = self._context != DEFAULT_CONTEXT
        return self._client.by_id(id, str(QualifiedSubject(self._context, "")) if elsewhere else None)


@dataclass(frozen=True, slots=True)
class Writing:
    """How values become payloads, by default as Confluent's serializers do it."""

    auto_register: bool = True
    use_latest_version: bool = False
    use_schema_id: int | None = None
    normalize: bool = False
    ids_in_headers: bool = False
    key_strategy: SubjectNameStrategy = SubjectNameStrategy.TOPIC_NAME
    value_strategy: SubjectNameStrategy = SubjectNameStrategy.TOPIC_NAME
    context: str = DEFAULT_CONTEXT

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Writing:
        """From settings by the names of Confluent's serializers. Raises ValueError."""
        unknown = sorted(settings.keys() - WRITING.keys())
        if unknown:
            raise ValueError(f"Unknown setting {unknown[0]!r} of a serializer; known are: {', '.join(sorted(WRITING))}")
        chosen = cls()
        for name, value in settings.items():
            attribute, read = WRITING[name]
            try:
                chosen = replace(chosen, **{attribute: read(str(value).strip())})
            except ValueError as wrong:
                raise ValueError(f"Invalid value {value!r} for {name}: {wrong}") from wrong
        return chosen

    def subject(self, topic: str, is_key: bool, record_name: str | None) -> str:
        strategy = self.key_strategy if is_key else self.value_strategy
        return str(QualifiedSubject(self.context, strategy.subject(topic, is_key, record_name)))


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


def _in_headers(text: str) -> bool:
    name = text.rpartition(".")[2].removesuffix("SchemaIdSerializer").lower()
    if name not in ("header", "prefix"):
        raise ValueError("expected header or prefix")
    return name == "header"


WRITING: dict[str, tuple[str, Callable[[str], Any]]] = {
    "auto.register.schemas": ("auto_register", _bool),
    "use.latest.version": ("use_latest_version", _bool),
    "use.schema.id": ("use_schema_id", int),
    "normalize.schemas": ("normalize", _bool),
    "schema.id.serializer": ("ids_in_headers", _in_headers),
    "key.subject.name.strategy": ("key_strategy", SubjectNameStrategy.named),
    "value.subject.name.strategy": ("value_strategy", SubjectNameStrategy.named),
    "schema.context": ("context", lambda text: "." + text.strip(":").removeprefix(".")),
}


class ValueWriter:
    """Writes by a schema that is given, or by the one that the registry has."""

    def __init__(self, client: RegistryClient, writing: Writing | None = None) -> None:
        self._client = client
        self._writing = writing or Writing()

    def write(
        self,
        topic: str,
        is_key: bool,
        value: Json,
        *,
        schema: SchemaText | None = None,
        message: str | None = None,
    ) -> tuple[bytes | None, list[tuple[str, bytes]]]:
        """The payload of a value, None of None, and headers to be added to the record.

        Without a schema it is written by the subject's latest version. `message` is the name of a Protobuf message that
        is not the first of its file. Raises InvalidValue, InvalidSchema and RegistryError.
        """
        if value is None:
            return None, []
        return self.write_by(self.schema(topic, is_key, schema), is_key, value, message=message)

    def write_by(
        self, stored: StoredSchema, is_key: bool, value: Json, *, message: str | None = None
    ) -> tuple[bytes, list[tuple[str, bytes]]]:
        """By a schema that the registry has; None is a value of it, too. Raises as `write` does."""
        parsed = self._client.parsed(stored.schema, self._writing.context)
        indexes = _message_indexes(parsed, message)
        content = parsed.encode(value, indexes)
        if not self._writing.ids_in_headers:
            if stored.id is None:
                raise InvalidValue(f"the registry at {self._client.url} gave no id of the schema")
            return write_id(stored.id, indexes) + content, []
        return content, [(header_name(is_key), write_id(self._guid(stored), indexes))]

    def schema(self, topic: str, is_key: bool, schema: SchemaText | None = None) -> StoredSchema:
        """What a topic's keys or values are written by: registered, looked up or the latest, as the settings say."""
        writing = self._writing
        if writing.use_schema_id is not None:
            elsewhere = writing.context != DEFAULT_CONTEXT
            return self._client.by_id(
                writing.use_schema_id, str(QualifiedSubject(writing.context, "")) if elsewhere else None
            )
        if schema is None:
            strategy = writing.key_strategy if is_key else writing.value_strategy
            if strategy is not SubjectNameStrategy.TOPIC_NAME:
                raise InvalidValue(f"{strategy} names subjects after records: give the schema, or use.schema.id")
            return self._client.version(writing.subject(topic, is_key, None))
        subject = writing.subject(topic, is_key, self._client.parsed(schema, writing.context).record_name)
        if writing.use_latest_version:
            return self._client.version(subject)
        if writing.auto_register:
            return self._client.register(subject, schema, normalize=writing.normalize)
        return self._client.lookup(subject, schema, normalize=writing.normalize)

    def _guid(self, stored: StoredSchema) -> UUID:
        """Registries tell it with a schema, not all of them when one is registered."""
        if stored.guid is None and stored.id is not None:
            subject = stored.subject if self._writing.context != DEFAULT_CONTEXT else None
            stored = self._client.by_id(stored.id, subject)
        if stored.guid is None:
            raise InvalidValue(
                f"the registry at {self._client.url} has no GUIDs, which headers need; write ids before payloads"
            )
        return stored.guid


def _message_indexes(parsed: ParsedSchema, message: str | None) -> Sequence[int]:
    if parsed.type is not SchemaType.PROTOBUF:
        if message is not None:
            raise InvalidValue(f"{parsed.type} schemas have no messages; {message!r} is none of one")
        return ()
    if message is None:
        return FIRST_MESSAGE
    from moldau.schemas.protobuf import ProtobufSchema

    return cast(ProtobufSchema, parsed).message_indexes(message)
