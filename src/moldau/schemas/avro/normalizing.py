"""The one text of all Avro schemas that mean the same, as Confluent's `normalize=true` makes it.

Properties and aliases are sorted, a logical type that Java knows comes first, defaults are numbers of their type.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from moldau.schemas.avro.printing import print_types
from moldau.schemas.avro.types import (
    Absent,
    Array,
    Enum,
    Field,
    Fixed,
    Heading,
    Map,
    Named,
    Names,
    Primitive,
    Properties,
    Record,
    Type,
    Union,
    Use,
    known,
)
from moldau.schemas.json_text import sorted_keys
from moldau.schemas.model import Json

# The logical types that Java's library knows, by the type that they may stand on.
_LOGICAL = {
    "int": frozenset({"date", "time-millis"}),
    "long": frozenset(
        {"time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"}
        | {"local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"}
    ),
    "string": frozenset({"uuid"}),
    "bytes": frozenset({"big-decimal"}),
}
_FIXED_SIZES = {"uuid": 16, "duration": 12}
_BITS_OF_A_DIGIT = 3.321928094887362


def normalize(root: Type, names: Names, *, known: Collection[str]) -> str:
    """Known are the types that only a reference defines."""
    normal = {full_name: _named(type_, names) for full_name, type_ in names.items()}
    return print_types(_shallow(root, names), normal, known=known)


def _shallow(type_: Type, names: Names) -> Type:
    """Named types inside become their names: each is made normal once, where `names` holds it."""
    if isinstance(type_, Named):
        return Use(type_.heading.full_name)
    if isinstance(type_, Primitive):
        return Primitive(type_.kind, _properties(type_.properties, type_.kind))
    if isinstance(type_, Array):
        return Array(_shallow(type_.items, names), _properties(type_.properties, "array"))
    if isinstance(type_, Map):
        return Map(_shallow(type_.values, names), _properties(type_.properties, "map"))
    if isinstance(type_, Union):
        return Union(tuple(_shallow(branch, names) for branch in type_.branches))
    return type_


def _named(type_: Named, names: Names) -> Named:
    size = type_.size if isinstance(type_, Fixed) else None
    heading = dataclasses.replace(
        type_.heading,
        doc=type_.heading.doc or None,
        aliases=_sorted_aliases(type_.heading),
        properties=_properties(type_.heading.properties, "fixed" if size is not None else "named", size),
    )
    if isinstance(type_, Record):
        return Record(heading, tuple(_field(each, names) for each in type_.fields), type_.is_error)
    if isinstance(type_, Enum):
        return Enum(heading, type_.symbols, type_.default)
    return Fixed(heading, type_.size)


def _sorted_aliases(heading: Heading) -> tuple[str, ...]:
    return tuple(sorted(heading.aliases, key=lambda alias: f".{alias}" if "." not in alias else alias))


def _field(field: Field, names: Names) -> Field:
    default = field.default
    return Field(
        name=field.name,
        type=_shallow(field.type, names),
        default=default if isinstance(default, Absent) else sorted_keys(_default(default, field.type, names)),
        doc=field.doc,
        order=field.order,
        aliases=tuple(sorted(field.aliases)),
        properties={key: sorted_keys(field.properties[key]) for key in sorted(field.properties)},
    )


def _default(value: Json, type_: Type, names: Names) -> Json:
    """A whole number where the type is a floating point one is written as one, 1.0."""
    type_ = known(type_, names)
    if isinstance(type_, Union):
        kinds = [each.kind for branch in type_.branches if isinstance(each := known(branch, names), Primitive)]
        numbers = [kind for kind in kinds if kind in ("int", "long", "float", "double")]
        return _default(value, Primitive(numbers[0], {}), names) if numbers else value
    if isinstance(type_, Primitive) and type_.kind in ("float", "double"):
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(type_, Array) and isinstance(value, list):
        return [_default(item, type_.items, names) for item in value]
    if isinstance(type_, Map) and isinstance(value, dict):
        return {key: _default(item, type_.values, names) for key, item in value.items()}
    if isinstance(type_, Record) and isinstance(value, dict):
        types = {each.name: each.type for each in type_.fields}
        return {key: _default(item, types[key], names) if key in types else item for key, item in value.items()}
    return value


def _properties(properties: Properties, kind: str, size: int | None = None) -> Properties:
    ordered = {key: sorted_keys(properties[key]) for key in sorted(properties)}
    if not _is_logical(properties, kind, size):
        return ordered
    first = ["logicalType"]
    if properties["logicalType"] == "decimal":
        first += ["precision", *(["scale"] if properties.get("scale") else [])]
    return {**{key: ordered[key] for key in first}, **ordered}


def _is_logical(properties: Properties, kind: str, size: int | None) -> bool:
    name = properties.get("logicalType")
    if not isinstance(name, str):
        return False
    if name == "decimal":
        return kind in ("bytes", "fixed") and _is_decimal(properties, size)
    return name in _LOGICAL.get(kind, ()) or (kind == "fixed" and _FIXED_SIZES.get(name) == size)


def _is_decimal(properties: Properties, size: int | None) -> bool:
    precision, scale = properties.get("precision"), properties.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or isinstance(precision, bool):
        return False
    digits = None if size is None else int((8 * size - 1) / _BITS_OF_A_DIGIT)
    return precision > 0 and 0 <= scale <= precision and (digits is None or precision <= digits)
