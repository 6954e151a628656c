"""Tags in a JSON Schema: the property `confluent:tags` of objects and of what is under `properties`.

A path names what it goes through: `object`, then a property, or `definitions` or `$defs` and a name; `array` for
`items`; `not`; `oneof`, `anyof` or `allof` and a number, which counts the schemas in an order of their own, by kind,
title and so on. `object.orders.array.object.id` is a field. Keywords beside each other count as an `allof`, a list of
types as an `anyof`, and `allof.0.conditional.then` leads into `then`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.schemas.json_schema.documents import Documents, Draft, Located, Place
from moldau.schemas.json_schema.modeling import Modeler
from moldau.schemas.json_schema.nodes import (
    Anything,
    Array,
    Boolean,
    Combined,
    Conditional,
    Constant,
    Node,
    Not,
    Nothing,
    Null,
    Number,
    Object,
    Reference,
    Text,
    Values,
)
from moldau.schemas.json_text import read_schema_text, write_json
from moldau.schemas.model import Json, ReferencedText
from moldau.schemas.tagging import Tagging, tag

# Confluent's names of the kinds, by which schemas beside each other are sorted.
KINDS = {
    Array: "ARRAY", Boolean: "BOOLEAN", Combined: "COMBINED", Conditional: "CONDITIONAL", Constant: "CONST",
    Anything: "EMPTY", Values: "ENUM", Nothing: "FALSE", Not: "NOT", Null: "NULL", Number: "NUMBER",
    Object: "OBJECT", Reference: "REFERENCE", Text: "STRING",
}  # fmt: skip
COMBINING = {"anyof": "anyOf", "allof": "allOf", "oneof": "oneOf"}


def tagged(text: str, references: Sequence[ReferencedText], taggings: Sequence[Tagging]) -> str:  # noqa: ARG001  no $ref is followed
    """Raises InvalidSchema for a path that leads nowhere."""
    root = read_schema_text(text)
    finder = _Finder(Documents({}, Draft.DRAFT_4).locate(root).place)
    for each in taggings:
        found = finder.find(root, each)
        if not isinstance(found, dict):
            raise each.missing()
        tag(found, each)
    return write_json(root)


@dataclass(slots=True)
class _Finder:
    place: Place
    """Of draft 4: so Confluent's registry reads a schema of a list by itself, whatever the whole is."""
    modeler: Modeler = field(default_factory=Modeler)
    orders: dict[int, list[Json]] = field(default_factory=dict)
    """Of lists of schemas, by what they are: whatever is tagged, the order stays."""

    def find(self, node: Any, tagging: Tagging) -> Any:
        names = tagging.names[::-1]
        while isinstance(node, dict) and names:
            step = names.pop()
            if step == "object":
                if not names:
                    return node if tagging.is_record else None
                node = _child(node, names)
                if not names:
                    return node
            elif step in ("array", "not"):
                node = node.get("items" if step == "array" else "not")
            else:
                node = self._combined(node, step, names)
        return None

    def _combined(self, node: dict[str, Any], step: str, names: list[str]) -> Any:
        """`names` is emptied from its end, as in `_child`."""
        number = names.pop() if names else ""
        schemas = node.get(COMBINING.get(step, ""))
        if isinstance(schemas, list):
            ordered = self._ordered(schemas)
            return ordered[int(number)] if number.isdecimal() and int(number) < len(ordered) else None
        if step == "allof" and names[-1:] == ["conditional"]:
            names.pop()
            return node.get(names.pop()) if names[-1:] in (["if"], ["then"], ["else"]) else None
        return node if step in ("allof", "anyof") else None

    def _ordered(self, schemas: list[Json]) -> list[Json]:
        if id(schemas) not in self.orders:
            self.orders[id(schemas)] = sorted(schemas, key=lambda each: self._rank(Located(each, self.place)))
        return self.orders[id(schemas)]

    def _rank(self, schema: Located | Node) -> tuple[Any, ...]:
        node = self.modeler.node(schema)
        contents = schema.contents if isinstance(schema, Located) and isinstance(schema.contents, dict) else {}
        notes = [_absent_first(contents.get(each)) for each in ("title", "description")]
        return KINDS[type(node)], notes, self._details(node)

    def _details(self, node: Node) -> tuple[Any, ...]:
        match node:
            case Constant(value=value):
                return (value,)
            case Values(values=values):
                return len(values), sorted(values)
            case Combined(criterion=criterion, nodes=nodes):
                return criterion, len(nodes), sorted(map(self._rank, nodes))
            case Not(node=inside):
                return self._rank(inside)
            case Object(properties=properties, required=required):
                return len(properties), sorted(properties), len(required), sorted(required)
            case Array(every=every) if every is not None:
                return self._rank(every)
            case _:
                return ()


def _child(node: dict[str, Any], names: list[str]) -> Any:
    """A property or a definition, whose name may have dots."""
    place = names.pop() if names[-1] in ("definitions", "$defs") else "properties"
    children = node.get(place)
    if not isinstance(children, dict) or not names:
        return None
    parts, lengths = [names.pop()], set(map(len, children))
    size = len(parts[0])
    while names and (size not in lengths or ".".join(parts) not in children):
        parts.append(names.pop())
        size += 1 + len(parts[-1])
    return children.get(".".join(parts))


def _absent_first(note: Json) -> tuple[bool, str]:
    return (True, note) if isinstance(note, str) else (False, "")
