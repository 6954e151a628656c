"""Avro's types as text: as Java's Schema.toString has it, which the registry stores, and normalized."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from moldau.core import limits
from moldau.schemas.avro.types import (
    PRIMITIVES,
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
)
from moldau.schemas.json_text import quoted, write_json
from moldau.schemas.model import InvalidSchema, Json

# A name that is also a word of the language is written in full, or it would be read as that.
_WORDS = frozenset({"record", "enum", "array", "map", "union", "fixed"} | PRIMITIVES)
_TYPES_DEPTH_MAX = limits.JSON_DEPTH_MAX  # named types that are first used inside one another, by references


def print_types(root: Type, names: Names, *, known: Collection[str] = ()) -> str:
    """Each named type in full where it is used first, but for those that are known. Raises InvalidSchema."""
    return _Printer(names, set(known)).type(root, "", 0)


@dataclass(slots=True)
class _Printer:
    names: Names
    printed: set[str]

    def type(self, type_: Type, namespace: str, depth: int) -> str:
        if depth > _TYPES_DEPTH_MAX:
            raise InvalidSchema(f"its types are nested deeper than {_TYPES_DEPTH_MAX} levels")
        if isinstance(type_, Primitive):
            return _object({"type": type_.kind}, type_.properties) if type_.properties else quoted(type_.kind)
        if isinstance(type_, Array):
            items = self.type(type_.items, namespace, depth + 1)
            return _braces(['"type":"array"', f'"items":{items}', *_members(type_.properties)])
        if isinstance(type_, Map):
            values = self.type(type_.values, namespace, depth + 1)
            return _braces(['"type":"map"', f'"values":{values}', *_members(type_.properties)])
        if isinstance(type_, Union):
            return "[" + ",".join([self.type(each, namespace, depth + 1) for each in type_.branches]) + "]"
        return self._named(type_, namespace, depth + 1)

    def _named(self, type_: Named | Use, namespace: str, depth: int) -> str:
        named = self.names[type_.full_name] if isinstance(type_, Use) else type_
        heading = named.heading
        if heading.full_name in self.printed:
            return quoted(_relative(heading.full_name, namespace))
        self.printed.add(heading.full_name)
        parts = [f'"type":{quoted(_word(named))}', f'"name":{quoted(heading.name)}']
        if heading.namespace != namespace:
            parts.append(f'"namespace":{quoted(heading.namespace)}')
        if heading.doc is not None:
            parts.append(f'"doc":{quoted(heading.doc)}')
        parts.extend(self._content(named, depth))
        parts.extend(_members(heading.properties))
        if heading.aliases:
            aliases: list[Json] = [_relative(alias, heading.namespace) for alias in heading.aliases]
            parts.append(f'"aliases":{write_json(aliases)}')
        return _braces(parts)

    def _content(self, named: Named, depth: int) -> Iterator[str]:
        if isinstance(named, Fixed):
            yield f'"size":{named.size}'
        elif isinstance(named, Enum):
            yield f'"symbols":{write_json(list(named.symbols))}'
            if named.default is not None:
                yield f'"default":{quoted(named.default)}'
        else:
            fields = [self._field(each, named.heading.namespace, depth + 1) for each in named.fields]
            yield '"fields":[' + ",".join(fields) + "]"

    def _field(self, field: Field, namespace: str, depth: int) -> str:
        parts = [f'"name":{quoted(field.name)}', f'"type":{self.type(field.type, namespace, depth)}']
        if field.doc is not None:
            parts.append(f'"doc":{quoted(field.doc)}')
        if not isinstance(field.default, Absent):
            parts.append(f'"default":{write_json(field.default)}')
        if field.order != "ascending":
            parts.append(f'"order":{quoted(field.order)}')
        if field.aliases:
            parts.append(f'"aliases":{write_json(list(field.aliases))}')
        return _braces([*parts, *_members(field.properties)])


def _word(named: Named) -> str:
    if isinstance(named, Record):
        return "error" if named.is_error else "record"
    return "enum" if isinstance(named, Enum) else "fixed"


def _relative(full_name: str, namespace: str) -> str:
    space, _, name = full_name.rpartition(".")
    return name if space and space == namespace and name not in _WORDS else full_name


def _object(first: Properties, then: Properties) -> str:
    return _braces([*_members(first), *_members(then)])


def _members(properties: Properties) -> list[str]:
    return [f"{quoted(key)}:{write_json(value)}" for key, value in properties.items()]


def _braces(parts: list[str]) -> str:
    return "{" + ",".join(parts) + "}"


def heading_of(type_: Type, names: Names) -> Heading | None:
    """Of a named type, also where only its name stands."""
    named = names[type_.full_name] if isinstance(type_, Use) else type_
    return named.heading if isinstance(named, Named) else None
