"""How a message class says what it looks like on the wire: types and marks for its annotations, and their reading.

    class TopicProduceData(Struct, gc=False):
        name: Annotated[str, until(12), IGNORABLE] = ""
        topic_id: Annotated[Uuid, since(13), IGNORABLE] = ZERO_UUID
        partition_data: list[PartitionProduceData] = []

A field without marks is in every version. `| None` makes it nullable, in the versions that `nullable` names, or in all.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, ClassVar, Protocol, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Struct

NEWEST = 32767  # an api version is a signed 16-bit number
NEVER = NEWEST + 1  # the FLEXIBLE_FROM of an API without flexible versions


class Kind(Enum):
    """A primitive type of the protocol; the value of one with a fixed size is its `struct` letter."""

    BOOL = "?"
    INT8 = "b"
    INT16 = "h"
    UINT16 = "H"
    INT32 = "i"
    UINT32 = "I"
    INT64 = "q"
    FLOAT64 = "d"
    UUID = "16s"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"

    @property
    def is_fixed(self) -> bool:
        return self not in _VARIABLE


_VARIABLE = frozenset({Kind.STRING, Kind.BYTES, Kind.RECORDS})
_PLAIN: dict[Any, Kind] = {bool: Kind.BOOL, float: Kind.FLOAT64, str: Kind.STRING}

Int8 = Annotated[int, Kind.INT8]
Int16 = Annotated[int, Kind.INT16]
UInt16 = Annotated[int, Kind.UINT16]
Int32 = Annotated[int, Kind.INT32]
Int64 = Annotated[int, Kind.INT64]
Uuid = Annotated[bytes, Kind.UUID]
# Decoded as a slice of the frame.
Bytes = Annotated[bytes | memoryview, Kind.BYTES]
# Decoded as a slice of the frame. Encoded from any buffer, or from any object with a length that whoever sends the
# parts knows how to send, such as a range of a file: hence no narrower type.
Records = Annotated[Any, Kind.RECORDS]


class Message(Protocol):
    """What a top-level class states besides its fields."""

    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[tuple[int, int]]
    FLEXIBLE_FROM: ClassVar[int]


@dataclass(frozen=True, slots=True)
class Versions:
    oldest: int
    newest: int

    def __contains__(self, version: int) -> bool:
        return self.oldest <= version <= self.newest


@dataclass(frozen=True, slots=True)
class Nullable:
    versions: Versions


@dataclass(frozen=True, slots=True)
class Tagged:
    tag: int
    versions: Versions


@dataclass(frozen=True, slots=True)
class Ignorable:
    """The field may be dropped, whatever it holds, from a version that has no place for it."""


EVERY_VERSION = Versions(0, NEWEST)
IGNORABLE = Ignorable()


def since(oldest: int) -> Versions:
    return Versions(oldest, NEWEST)


def until(newest: int) -> Versions:
    return Versions(0, newest)


def within(oldest: int, newest: int) -> Versions:
    return Versions(oldest, newest)


def nullable(oldest: int, newest: int = NEWEST) -> Nullable:
    return Nullable(Versions(oldest, newest))


def tagged(tag: int, *, since: int) -> Tagged:
    return Tagged(tag, Versions(since, NEWEST))


@dataclass(frozen=True, slots=True)
class Field:
    """One field as the codec sees it."""

    name: str
    type: Kind | type[Struct]
    is_array: bool
    versions: Versions
    nullable: Versions | None
    tag: int | None
    is_ignorable: bool
    default: Callable[[], Any]

    def is_nullable_in(self, version: int) -> bool:
        return self.nullable is not None and version in self.nullable

    @property
    def is_prose(self) -> bool:
        """Words for people, which often repeat a name that a client gave: better cut than not sent."""
        return self.name.endswith("error_message")

    @property
    def is_fixed(self) -> bool:
        return not self.is_array and isinstance(self.type, Kind) and self.type.is_fixed


@cache
def fields_of(cls: type[Struct]) -> tuple[Field, ...]:
    """The fields of a message class in the order of the wire, which is the order of their declaration."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_field(cls, spec, hints[spec.name]) for spec in msgspec.structs.fields(cls))


def _field(cls: type[Struct], spec: msgspec.structs.FieldInfo, hint: Any) -> Field:
    marks: list[object] = []
    bare, is_optional = _unwrap(hint, marks)
    is_array = get_origin(bare) is list
    if is_array:
        bare, _ = _unwrap(get_args(bare)[0], marks)
    tags = [mark for mark in marks if isinstance(mark, Tagged)]
    versions = [mark for mark in marks if isinstance(mark, Versions)] + [mark.versions for mark in tags]
    nulls = [mark.versions for mark in marks if isinstance(mark, Nullable)]
    if len(versions) > 1 or len(nulls) > is_optional:
        raise TypeError(f"{cls.__name__}.{spec.name} is marked twice, or nullable without None")
    return Field(
        name=spec.name,
        type=_type_of(bare, marks),
        is_array=is_array,
        versions=versions[0] if versions else EVERY_VERSION,
        nullable=(nulls or [EVERY_VERSION])[0] if is_optional else None,
        tag=tags[0].tag if tags else None,
        is_ignorable=IGNORABLE in marks,
        default=_default_of(cls, spec),
    )


def _unwrap(hint: Any, marks: list[object]) -> tuple[Any, bool]:
    """Peel annotations and None off a type, collecting the marks on the way."""
    is_optional = False
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            hint, *extra = get_args(hint)
            marks.extend(extra)
        elif origin in (Union, types.UnionType) and type(None) in get_args(hint):
            is_optional = True
            hint = Union[tuple(arg for arg in get_args(hint) if arg is not type(None))]  # noqa: UP007
        else:
            return hint, is_optional


def _type_of(bare: Any, marks: list[object]) -> Kind | type[Struct]:
    kinds = [mark for mark in marks if isinstance(mark, Kind)]
    if kinds:
        return kinds[0]
    if bare in _PLAIN:
        return _PLAIN[bare]
    if isinstance(bare, type) and issubclass(bare, Struct):
        return bare
    raise TypeError(f"{bare} has no place in the protocol")


def _default_of(cls: type[Struct], spec: msgspec.structs.FieldInfo) -> Callable[[], Any]:
    if spec.default_factory is not NODEFAULT:
        factory: Callable[[], Any] = spec.default_factory
        return factory
    if spec.default is NODEFAULT:
        raise TypeError(f"{cls.__name__}.{spec.name} needs a default: versions without it must give some value")
    default = spec.default
    return lambda: default
