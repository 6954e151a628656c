"""Avro's texts to types, by the rules of Java's Schema.Parser with strict names, as Confluent's registry has it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from moldau.core import limits
from moldau.schemas.avro.defaults import Fitting
from moldau.schemas.avro.types import (
    ABSENT,
    PRIMITIVES,
    Absent,
    Array,
    Enum,
    Field,
    Fixed,
    Heading,
    Map,
    Named,
    Primitive,
    Properties,
    Record,
    Type,
    Union,
    Use,
)
from moldau.schemas.json_text import quoted, read_schema_text, write_json
from moldau.schemas.model import InvalidSchema, Json, ReferencedText

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset({"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"})
_ENUM_RESERVED = _RESERVED | {"default"}
_FIELD_RESERVED = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS = frozenset({"ascending", "descending", "ignore"})
_FIXED_BYTES_MAX = 2**31 - 1 - 8  # what Java can allocate, and its parser allows

Object = dict[str, Json]


@dataclass(slots=True)
class Parsed:
    """A text's own type, the types that were found by name, and the full names of what its references define."""

    root: Type
    names: dict[str, Named]
    referenced: tuple[str, ...]


def parse_types(text: str, references: Sequence[ReferencedText]) -> Parsed:
    """Raises InvalidSchema."""
    total = sum(len(reference.text) for reference in references)
    if total > limits.SCHEMA_REFERENCES_CHARS_MAX:
        raise InvalidSchema(
            f"its references have {total} characters; at most {limits.SCHEMA_REFERENCES_CHARS_MAX} are allowed"
        )
    parser = _Parser()
    referenced = []
    for reference in references:
        try:
            root = parser.parse(reference.text)
        except InvalidSchema as error:
            raise InvalidSchema(f"reference {quoted(reference.name)}: {error}") from None
        if isinstance(root, Named):
            referenced.append(root.heading.full_name)
    return Parsed(parser.parse(text), parser.names, tuple(referenced))


@dataclass(slots=True)
class _Parser:
    names: dict[str, Named] = field(default_factory=dict)
    uses: dict[str, str] = field(default_factory=dict)
    defaults: list[tuple[str, Type, Json]] = field(default_factory=list)

    def parse(self, text: str) -> Type:
        """Names may be used before their definition, so what names must tell is judged at the end."""
        self.uses.clear()
        self.defaults.clear()
        root = self._type(read_schema_text(text, comments=True), "", "")
        for full_name, path in self.uses.items():
            if full_name not in self.names:
                raise InvalidSchema(f"{_at(path)}: {quoted(full_name)} is neither defined here nor in a reference")
        fitting = Fitting(self.names)
        for path, type_, default in self.defaults:
            if not fitting.fits(default, type_):
                raise InvalidSchema(f"{_at(path)}: the default {_short(default)} does not fit the field's type")
        return root

    def _type(self, node: Json, namespace: str, path: str) -> Type:
        if isinstance(node, str):
            return self._named_or_primitive(node, namespace, path)
        if isinstance(node, list):
            return self._union(node, namespace, path)
        if isinstance(node, dict):
            return self._complex(node, namespace, path)
        raise InvalidSchema(f"{_at(path)}: {_short(node)} is no schema; a name, an object or an array is expected")

    def _named_or_primitive(self, name: str, namespace: str, path: str) -> Type:
        if name in PRIMITIVES:
            return Primitive(name, {})
        full_name = f"{namespace}.{name}" if namespace and "." not in name else name
        if full_name not in self.names and name in self.names:
            full_name = name
        self.uses.setdefault(full_name, path)
        return Use(full_name)

    def _union(self, nodes: Sequence[Json], namespace: str, path: str) -> Type:
        branches = tuple(self._type(node, namespace, f"{path}/{index}") for index, node in enumerate(nodes))
        seen: set[str] = set()
        for index, branch in enumerate(branches):
            if isinstance(branch, Union):
                raise InvalidSchema(f"{_at(f'{path}/{index}')}: a union must not hold another one")
            name = _branch_name(branch)
            if name in seen:
                raise InvalidSchema(f"{_at(f'{path}/{index}')}: the union has {quoted(name)} twice")
            seen.add(name)
        return Union(branches)

    def _complex(self, node: Object, namespace: str, path: str) -> Type:
        kind = node.get("type")
        if not isinstance(kind, str):
            raise InvalidSchema(f'{_at(path)}: no "type" that is a name')
        if kind in PRIMITIVES:
            return Primitive(kind, _properties(node, _RESERVED))
        if kind in ("record", "error"):
            return self._record(node, namespace, path)
        if kind == "enum":
            return self._define(_enum(node, namespace, path), path)
        if kind == "fixed":
            return self._define(_fixed(node, namespace, path), path)
        if kind == "array":
            items = self._type(_required(node, "items", path), namespace, f"{path}/items")
            return Array(items, _properties(node, _RESERVED))
        if kind == "map":
            values = self._type(_required(node, "values", path), namespace, f"{path}/values")
            return Map(values, _properties(node, _RESERVED))
        raise InvalidSchema(
            f"{_at(path)}: {quoted(kind)} is no type to define; that is record, error, enum, fixed, array, map or a "
            "primitive type"
        )

    def _record(self, node: Object, namespace: str, path: str) -> Record:
        heading = _heading(node, namespace, path, reserved=_RESERVED)
        nodes = node.get("fields")
        if not isinstance(nodes, list):
            raise InvalidSchema(f"{_at(path)}: the record {quoted(heading.full_name)} has no array of fields")
        fields = tuple(
            self._field(item, heading.namespace, f"{path}/fields/{index}") for index, item in enumerate(nodes)
        )
        _refuse_twice((each.name for each in fields), "the field", f"{path}/fields")
        record = Record(heading, fields, node["type"] == "error")
        self._define(record, path)
        return record

    def _field(self, node: Json, namespace: str, path: str) -> Field:
        if not isinstance(node, dict):
            raise InvalidSchema(f"{_at(path)}: {_short(node)} is no field; an object is expected")
        name = _simple_name(node, path)
        type_ = self._type(_required(node, "type", path), namespace, f"{path}/type")
        order = node.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise InvalidSchema(f"{_at(f'{path}/order')}: {_short(order)} is none of ascending, descending and ignore")
        default = _default(node, type_, path)
        if not isinstance(default, Absent):
            self.defaults.append((f"{path}/default", type_, default))
        return Field(
            name=name,
            type=type_,
            default=default,
            doc=_text(node, "doc"),
            order=order.lower(),
            aliases=_aliases(node, path),
            properties=_properties(node, _FIELD_RESERVED),
        )

    def _define(self, type_: Named, path: str) -> Named:
        """A second definition is allowed if it says the same: a text may repeat what its reference defines."""
        full_name = type_.heading.full_name
        if full_name in PRIMITIVES:
            raise InvalidSchema(f"{_at(path)}: a type must not be named as the primitive {quoted(full_name)}")
        earlier = self.names.setdefault(full_name, type_)
        if earlier is not type_ and _meaning(earlier) != _meaning(type_):
            raise InvalidSchema(f"{_at(path)}: {quoted(full_name)} is defined a second time, and differently")
        return type_


def _branch_name(branch: Type) -> str:
    if isinstance(branch, Use):
        return branch.full_name
    if isinstance(branch, Named):
        return branch.heading.full_name
    return branch.kind if isinstance(branch, Primitive) else type(branch).__name__.lower()


def _heading(node: Object, namespace: str, path: str, *, reserved: frozenset[str]) -> Heading:
    text = _required_text(node, "name", path)
    given = _text(node, "namespace")
    namespace, name = _split(text, namespace if given is None else given)
    for part in namespace.split(".") if namespace else ():
        _check_name(part, "the part of a namespace", path)
    _check_name(name, "the name", f"{path}/name")
    aliases = []
    for alias in _aliases(node, path):
        space, simple = _split(alias, namespace)
        _check_name(simple, "the alias", f"{path}/aliases")
        aliases.append(f"{space}.{simple}" if space else simple)
    return Heading(name, namespace, _text(node, "doc"), tuple(dict.fromkeys(aliases)), _properties(node, reserved))


def _split(name: str, namespace: str) -> tuple[str, str]:
    space, dot, simple = name.rpartition(".")
    return (space, simple) if dot else (namespace, name)


def _enum(node: Object, namespace: str, path: str) -> Enum:
    heading = _heading(node, namespace, path, reserved=_ENUM_RESERVED)
    nodes = node.get("symbols")
    if not isinstance(nodes, list):
        raise InvalidSchema(f"{_at(path)}: the enum {quoted(heading.full_name)} has no array of symbols")
    symbols = []
    for index, symbol in enumerate(nodes):
        if not isinstance(symbol, str):
            raise InvalidSchema(f"{_at(f'{path}/symbols/{index}')}: {_short(symbol)} is no symbol; a text is expected")
        _check_name(symbol, "the symbol", f"{path}/symbols/{index}")
        symbols.append(symbol)
    _refuse_twice(symbols, "the symbol", f"{path}/symbols")
    default = _text(node, "default")
    if default is not None and default not in symbols:
        raise InvalidSchema(f"{_at(f'{path}/default')}: {quoted(default)} is none of the symbols")
    return Enum(heading, tuple(symbols), default)


def _fixed(node: Object, namespace: str, path: str) -> Fixed:
    heading = _heading(node, namespace, path, reserved=_RESERVED)
    size = node.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _FIXED_BYTES_MAX:
        raise InvalidSchema(f"{_at(f'{path}/size')}: {_short(size)} is no size; 0 to {_FIXED_BYTES_MAX} is expected")
    return Fixed(heading, size)


def _default(node: Object, type_: Type, path: str) -> Json | Absent:
    """Java reads a text as a number where a floating point number is wanted: "NaN" can't be said in JSON otherwise."""
    if "default" not in node:
        return ABSENT
    default = node["default"]
    if isinstance(default, str) and isinstance(type_, Primitive) and type_.kind in ("float", "double"):
        try:
            return float(default.strip())
        except ValueError:
            raise InvalidSchema(f"{_at(f'{path}/default')}: {_short(default)} is no number") from None
    return default


def _aliases(node: Object, path: str) -> tuple[str, ...]:
    aliases = node.get("aliases", ABSENT)
    if isinstance(aliases, Absent):
        return ()
    if not isinstance(aliases, list):
        raise InvalidSchema(f"{_at(f'{path}/aliases')}: no array of names")
    for alias in aliases:
        if not isinstance(alias, str):
            raise InvalidSchema(f"{_at(f'{path}/aliases')}: {_short(alias)} is no name")
    return tuple(dict.fromkeys(alias for alias in aliases if isinstance(alias, str)))


def _properties(node: Object, reserved: frozenset[str]) -> Properties:
    return {key: value for key, value in node.items() if key not in reserved}


def _required(node: Object, key: str, path: str) -> Json:
    if key not in node:
        raise InvalidSchema(f"{_at(path)}: no {quoted(key)}")
    return node[key]


def _required_text(node: Object, key: str, path: str) -> str:
    text = _text(node, key)
    if text is None:
        raise InvalidSchema(f"{_at(path)}: no {quoted(key)} that is a text")
    return text


def _text(node: Object, key: str) -> str | None:
    value = node.get(key)
    return value if isinstance(value, str) else None


def _simple_name(node: Object, path: str) -> str:
    name = _required_text(node, "name", path)
    _check_name(name, "the field's name", f"{path}/name")
    return name


def _check_name(name: str, what: str, path: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidSchema(
            f"{_at(path)}: {what} {_short(name)} is not made of letters, digits and _, beginning with no digit"
        )


def _refuse_twice(names: Iterable[str], what: str, path: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidSchema(f"{_at(path)}: {what} {quoted(name)} is there twice")
        seen.add(name)


def _meaning(type_: Named) -> Json:
    """What two definitions of one name must agree in: all but documentation, aliases and an enum's default."""
    properties = dict(type_.heading.properties)
    if isinstance(type_, Fixed):
        return ["fixed", type_.size, properties]
    if isinstance(type_, Enum):
        return ["enum", list(type_.symbols), properties]
    fields: list[Json] = [
        [each.name, _shape(each.type), _said(each.default), each.order, dict(each.properties)] for each in type_.fields
    ]
    return ["record", fields, properties]


def _shape(type_: Type) -> Json:
    if isinstance(type_, Union):
        return [_shape(branch) for branch in type_.branches]
    if isinstance(type_, Array):
        return {"array": _shape(type_.items), "properties": dict(type_.properties)}
    if isinstance(type_, Map):
        return {"map": _shape(type_.values), "properties": dict(type_.properties)}
    if isinstance(type_, Primitive):
        return {type_.kind: dict(type_.properties)}
    return _branch_name(type_)


def _said(default: Json | Absent) -> Json:
    if isinstance(default, float) and math.isnan(default):
        return ["NaN"]
    return [] if isinstance(default, Absent) else [default]


def _short(value: Json) -> str:
    text = write_json(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _at(path: str) -> str:
    return f"at {path}" if path else "at the root"
