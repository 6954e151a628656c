"""A JSON Schema as compatibility looks at it: one node for each kind of value that keywords speak of.

Keywords about several kinds in one object are a `Combined` of nodes that must all hold, as Confluent's registry has it.
What is inside a node is made a node when it is asked for: schemas can be deep, and lead to themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from moldau.schemas.json_schema.documents import Located, Place

Limits = Mapping[str, int | float]


class Criterion(StrEnum):
    ALL = "allOf"
    ANY = "anyOf"
    ONE = "oneOf"


@dataclass(frozen=True, slots=True)
class Notes:
    """What stands beside the keywords of a schema and still counts."""

    has_default: bool = False
    is_connect_bytes: bool = False


PLAIN = Notes()


@dataclass(frozen=True, slots=True, eq=False)
class Anything:
    """`true` and `{}`."""

    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Nothing:
    """`false`."""

    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Boolean:
    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    limits: Limits
    pattern: str | None
    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    limits: Limits
    multiple_of: int | float | None
    integer: bool
    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """`enum`, as texts of JSON."""

    values: frozenset[str]
    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    value: str
    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Not:
    node: Located
    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """`if`, `then` and `else`, which the registry does not look into."""

    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    criterion: Criterion
    nodes: tuple[Node | Located, ...]
    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """`additional` is a schema or whether others than the named properties are allowed."""

    limits: Limits
    properties: Mapping[str, Located]
    required: frozenset[str]
    patterns: Mapping[str, Located]
    additional: Located | bool
    unevaluated: Located | None
    needed: Mapping[str, frozenset[str]]
    dependent: Mapping[str, Located]
    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    limits: Limits
    unique: bool
    every: Located | None
    items: tuple[Located, ...]
    additional: Located | bool
    unevaluated: Located | None
    notes: Notes = PLAIN


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """`$ref`, as it is written and where."""

    ref: str
    place: Place
    notes: Notes = PLAIN


Node = (
    Anything | Nothing | Boolean | Null | Text | Number | Values | Constant | Not | Conditional | Combined
    | Object | Array | Reference
)  # fmt: skip
