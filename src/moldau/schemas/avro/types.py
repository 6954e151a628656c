"""An Avro schema as a tree of values. A name stands where a named type is used; `Names` knows what it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.schemas.model import Json

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

Properties = Mapping[str, Json]


class Absent:
    """No default at all, which is another thing than the default null."""


ABSENT = Absent()


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    kind: str
    properties: Properties


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    items: Type
    properties: Properties


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    values: Type
    properties: Properties


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    branches: tuple[Type, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    name: str
    type: Type
    default: Json | Absent
    doc: str | None
    order: str
    aliases: tuple[str, ...]
    properties: Properties


@dataclass(frozen=True, slots=True, eq=False)
class Heading:
    """What all named types have. `aliases` are full names."""

    name: str
    namespace: str
    doc: str | None
    aliases: tuple[str, ...]
    properties: Properties

    @property
    def full_name(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    heading: Heading
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Enum:
    heading: Heading
    symbols: tuple[str, ...]
    default: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    heading: Heading
    fields: tuple[Field, ...]
    is_error: bool


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A named type that is defined elsewhere, by its full name."""

    full_name: str


Named = Fixed | Enum | Record
Known = Primitive | Array | Map | Union | Named
Type = Known | Use
Names = Mapping[str, Named]


def known(type_: Type, names: Names) -> Known:
    """The type itself where a name stands for it."""
    return names[type_.full_name] if isinstance(type_, Use) else type_


def kind_of(type_: Known) -> str:
    """Avro's word for it."""
    return type_.kind if isinstance(type_, Primitive) else type(type_).__name__.lower()
