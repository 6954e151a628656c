"""Values by the schemas of a registry: found or registered as Confluent's proxy does, written, and read.

schema_id                      that schema; its subject is named by the strategy, or by `subject`
schema_version                 a version of the subject
type, schema                   the text: found in the subject, or registered there
nothing of these               the subject's latest version
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from moldau.rest.calls import Json
from moldau.rest.problems import bad_request
from moldau.rest.producing.values import AVRO, JSONSCHEMA, PROTOBUF, Data, MayRegister, Written, is_null
from moldau.rest.threads import Threads, in_thread
from moldau.schemas.framing import FIRST_MESSAGE, write_id
from moldau.schemas.model import InvalidSchema, InvalidValue, SchemaType
from moldau.schemas.registry_client import RegistryClient, RegistryError, RegistryUnreachable, SchemaText, StoredSchema
from moldau.schemas.subjects import SubjectNameStrategy
from moldau.schemas.values import ValueReader
from moldau.web.authentication import forbidden
from moldau.web.errors import ApiError
from moldau.web.kafka_errors import AUTHORIZATION, UNAVAILABLE

TYPES = {AVRO: SchemaType.AVRO, JSONSCHEMA: SchemaType.JSON, PROTOBUF: SchemaType.PROTOBUF}
NAMES = {kind: name for name, kind in TYPES.items()}
JSON_CONVERSION, INVALID_SCHEMA, NOT_SERIALIZED = 42203, 42205, 42207


class NoRegistry:
    """Whoever names a schema is told so."""

    async def write(self, data: Data, topic: str, *, is_key: bool, may: MayRegister) -> Written:  # noqa: ARG002
        raise ApiError(NOT_SERIALIZED, "Error serializing message. The proxy has no schema registry")

    async def write_all(self, data: Sequence[Data], topic: str, *, is_key: bool) -> list[Written]:
        return [await self.write(each, topic, is_key=is_key, may=bool) for each in data]


class RegistryValues:
    def __init__(self, client: RegistryClient, threads: Threads) -> None:
        self._client = client
        self._threads = threads
        self._reader = ValueReader(client)

    async def write(self, data: Data, topic: str, *, is_key: bool, may: MayRegister) -> Written:
        write = partial(self._write_all, [data], topic, is_key=is_key, may=may)
        return (await in_thread(self._threads.asking, write))[0]

    async def write_all(self, data: Sequence[Data], topic: str, *, is_key: bool) -> list[Written]:
        """All that one request says in one turn of a thread, by the topic's own subjects. Raises ApiError."""
        write = partial(self._write_all, data, topic, is_key=is_key, may=lambda _: True)
        return await in_thread(self._threads.asking, write)

    def read(self, payload: bytes, record: Any, *, is_key: bool) -> Json:
        """In any thread. Raises InvalidValue, and ApiError while the registry fails."""
        try:
            opened = self._reader.open(record.topic(), is_key, payload, record.headers() or ())
            content = opened.decode()
        except RegistryError as wrong:
            raise _refused(wrong) from None
        schema = {"schema_guid": str(opened.id)} if isinstance(opened.id, UUID) else {"schema_id": opened.id}
        return {"type": NAMES[opened.schema.type], **schema, "data": content}

    def _write_all(self, data: Sequence[Data], topic: str, *, is_key: bool, may: MayRegister) -> list[Written]:
        try:
            return [self._write(each, topic, is_key=is_key, may=may) for each in data]
        except RegistryError as wrong:
            raise _refused(wrong) from None
        except InvalidSchema as wrong:
            raise ApiError(INVALID_SCHEMA, f"Invalid schema: {wrong}") from None
        except InvalidValue as wrong:
            raise ApiError(JSON_CONVERSION, f"Conversion of JSON to Object failed: {wrong}") from None

    def _write(self, data: Data, topic: str, *, is_key: bool, may: MayRegister) -> Written:
        stored, subject = self._stored(data, topic, is_key=is_key, may=may)
        parsed = self._client.parsed(stored.schema)
        name = NAMES[parsed.type]
        if is_null(data.data):
            return Written(None, name, subject, stored.id, stored.version)
        try:
            value = msgspec.json.decode(data.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise bad_request("data is not valid JSON.") from None
        message = FIRST_MESSAGE if parsed.type is SchemaType.PROTOBUF else ()
        if stored.id is None:
            raise ApiError(NOT_SERIALIZED, "Error serializing message. The registry gave no id of the schema")
        payload = write_id(stored.id, message) + parsed.encode(value, message)
        return Written(payload, name, subject, stored.id, stored.version)

    def _stored(self, data: Data, topic: str, *, is_key: bool, may: MayRegister) -> tuple[StoredSchema, str]:
        _check(data)
        if data.schema_id is not None:
            found = self._client.by_id(data.schema_id)
            subject = self._subject(data, topic, found.schema, is_key=is_key)
            return _with_id(self._client.lookup(subject, found.schema), data.schema_id), subject
        if data.schema is not None:
            assert data.type is not None, "checked"
            text = SchemaText(TYPES[data.type.upper()], data.schema)
            subject = self._subject(data, topic, text, is_key=is_key)
            return self._registered(subject, text, may), subject
        subject = self._subject(data, topic, None, is_key=is_key)
        if data.schema_version is not None:
            return self._client.version(subject, data.schema_version), subject
        return self._client.version(subject), subject

    def _registered(self, subject: str, text: SchemaText, may: MayRegister) -> StoredSchema:
        """Who may not register may still use what is there."""
        try:
            return self._client.lookup(subject, text)
        except RegistryError as refused:
            if not refused.is_unknown:
                raise
        if not may(subject):
            raise forbidden()
        self._client.parsed(text)
        self._client.register(subject, text)
        return self._client.lookup(subject, text)

    def _subject(self, data: Data, topic: str, schema: SchemaText | None, *, is_key: bool) -> str:
        if data.subject is not None:
            return data.subject
        try:
            strategy = SubjectNameStrategy.named(data.subject_name_strategy or "TOPIC_NAME")
        except ValueError as wrong:
            raise bad_request(str(wrong)) from None
        if strategy is SubjectNameStrategy.TOPIC_NAME:
            return strategy.subject(topic, is_key, None)
        if schema is None:
            raise bad_request(f"Cannot use subject_name_strategy={strategy} without schema_id or schema.")
        return strategy.subject(topic, is_key, self._client.parsed(schema).record_name)


def _with_id(stored: StoredSchema, schema_id: int) -> StoredSchema:
    return StoredSchema(stored.schema, schema_id, stored.guid, stored.subject, stored.version)


def _check(data: Data) -> None:
    """One way of naming a schema at a time."""
    ways = [name for name in ("schema_id", "schema_version", "schema") if getattr(data, name) is not None]
    if len(ways) > 1:
        raise bad_request(f"Unsupported argument: {' and '.join(ways)} exclude each other")
    if data.subject is not None and data.subject_name_strategy is not None:
        raise bad_request("Unsupported argument: subject and subject_name_strategy exclude each other")
    if (data.type is not None) != (data.schema is not None):
        raise bad_request("Unsupported argument: type goes with schema, and schema with type")


def _refused(wrong: RegistryError) -> ApiError:
    if isinstance(wrong, RegistryUnreachable):
        return ApiError(UNAVAILABLE, str(wrong))
    if wrong.code in (401, 403, 40101, AUTHORIZATION):
        return ApiError(AUTHORIZATION, str(wrong))
    if wrong.code in (42201, 422):
        return ApiError(INVALID_SCHEMA, f"Invalid schema: {wrong.words}")
    return ApiError(NOT_SERIALIZED, f"Error serializing message. {wrong}")
