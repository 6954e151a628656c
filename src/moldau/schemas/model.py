"""What a schema is to everybody who handles one: the registry, its clients, tools, the REST proxy and Spark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class SchemaType(StrEnum):
    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class InvalidSchema(Exception):
    """A text is no schema of its type; the message says where and why."""


class InvalidValue(Exception):
    """A value and a schema do not fit; the message names the field."""


@dataclass(frozen=True, slots=True)
class Reference:
    """`name` as the schema's text says it, and where its schema is registered."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ReferencedText:
    """A schema that another one refers to, found: its text by the name that refers to it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why a reader's schema cannot read what a writer's wrote.

    `kind` is Confluent's name for it, such as READER_FIELD_MISSING_DEFAULT_VALUE, `path` the place in the reader's
    schema. The description speaks of `{reader}` and `{writer}`: which of the two is the new schema depends on the
    level that is asked for. `detail` is Avro's own message, which Confluent calls additionalInfo.
    """

    kind: str
    path: str
    description: str
    detail: str = ""

    def described(self, *, reader: str, writer: str) -> str:
        """The description with words such as "new" and "old" in place."""
        return self.description.replace("{reader}", reader).replace("{writer}", writer)


class ParsedSchema(Protocol):
    """A schema of any type. Each type has a `parse(text, references)`; references come before those that need them."""

    @property
    def type(self) -> SchemaType: ...

    @property
    def record_name(self) -> str | None:
        """Of the record, the title or the first message: what subjects are named after by RecordNameStrategy."""

    @property
    def fields(self) -> Collection[str]:
        """The names of its outermost fields, without those of Protobuf's oneofs."""

    @property
    def canonical(self) -> str:
        """The text that is stored and by which equal schemas are known."""

    @property
    def normalized(self) -> str:
        """The canonical text of all schemas that mean the same: what `normalize=true` stores."""

    def formatted(self, form: str) -> str:
        """The text as `format=` asks for: Avro's `resolved`, Protobuf's `serialized`; the canonical for any other."""

    def incompatibilities(self, writer: Self) -> Sequence[Incompatibility]:
        """Why this schema, as the reader's, cannot read what `writer` wrote; empty if it can."""

    def decode(self, payload: bytes, message: Sequence[int] = ()) -> Json:
        """The value in its type's JSON form; `message` are Protobuf's message indexes. Raises InvalidValue."""

    def encode(self, value: Json, message: Sequence[int] = ()) -> bytes:
        """The payload of a value in JSON form. Raises InvalidValue."""
