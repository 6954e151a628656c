"""Keywords to nodes: which schema a JSON object is, in the eyes of Confluent's registry."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.schemas.json_schema.documents import Draft, Located, Place
from moldau.schemas.json_schema.nodes import (
    Anything,
    Array,
    Boolean,
    Combined,
    Conditional,
    Constant,
    Criterion,
    Node,
    Not,
    Notes,
    Nothing,
    Null,
    Number,
    Object,
    Reference,
    Text,
    Values,
)
from moldau.schemas.model import Json

Keywords = dict[str, Json]

_OBJECT = frozenset(
    {"properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties"}
    | {"additionalProperties"}
)
_ARRAY = frozenset({"items", "additionalItems", "minItems", "maxItems", "uniqueItems"})
_NUMBER = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_TEXT = frozenset({"minLength", "maxLength", "pattern", "format"})
_MODERN = {
    "object": frozenset({"dependentRequired", "dependentSchemas", "unevaluatedProperties"}),
    "array": frozenset({"prefixItems", "unevaluatedItems"}),
}


@dataclass(slots=True)
class Modeler:
    """The nodes of one schema, each made once: a comparison knows a pair of them by what they are."""

    made: dict[int, tuple[Json, Node]] = field(default_factory=dict)

    def node(self, schema: Located | Node) -> Node:
        if not isinstance(schema, Located):
            return schema
        contents = schema.contents
        if not isinstance(contents, dict):
            return Nothing() if contents is False else Anything()
        made = self.made.get(id(contents))
        if made is None:
            made = self.made[id(contents)] = (contents, self._of_keywords(contents, schema.place.inside(contents)))
        return made[1]

    def target(self, node: Node) -> Node:
        """What a reference leads to in the end; one that leads to itself says nothing. Raises InvalidSchema."""
        seen: set[int] = set()
        while isinstance(node, Reference):
            if id(node) in seen:
                return Anything()
            seen.add(id(node))
            node = self.node(node.place.follow(node.ref))
        return node

    def _of_keywords(self, schema: Keywords, place: Place) -> Node:
        notes = Notes("default" in schema, schema.get("connect.type") == "bytes")
        parts = list(_Parts(schema, place, set(schema)).all())
        if not parts:
            return Anything(notes)
        if len(parts) == 1:
            return dataclasses.replace(parts[0], notes=notes)
        return Combined(Criterion.ALL, tuple(parts), notes)


@dataclass(slots=True)
class _Parts:
    """The nodes that one object's keywords make, each keyword in one of them; `left` are those without."""

    schema: Keywords
    place: Place
    left: set[str]

    def all(self) -> Iterable[Node]:
        ref = self._reference()
        if ref is not None:
            yield ref
            if not self.place.draft.has_siblings_of_references:
                return
        yield from self._of_any_kind()
        yield from self._types()
        for kind, keywords in self._kinds():
            if not self.left.isdisjoint(keywords):
                yield self._of_type(kind)
        if self.place.draft not in (Draft.DRAFT_4, Draft.DRAFT_6) and not self.left.isdisjoint(("if", "then", "else")):
            yield Conditional()

    def _of_any_kind(self) -> Iterable[Node]:
        """Keywords that speak of values whatever their type."""
        if isinstance(values := self.schema.get("enum"), list):
            yield Values(frozenset(map(comparable, values)))
        for criterion in Criterion:
            if isinstance(nodes := self.schema.get(criterion), list):
                yield Combined(criterion, self._distinct(nodes))
        if "not" in self.schema:
            yield Not(self._located("not"))
        if "const" in self.schema and self.place.draft is not Draft.DRAFT_4:
            yield Constant(comparable(self.schema["const"]))

    def _reference(self) -> Reference | None:
        for keyword in ("$ref", "$recursiveRef", "$dynamicRef"):
            ref = self.schema.get(keyword)
            if isinstance(ref, str):
                return Reference(ref, self.place)
        return None

    def _distinct(self, nodes: list[Json]) -> tuple[Located, ...]:
        """A schema that is listed twice counts once."""
        by_text = {comparable(each): each for each in nodes}
        return tuple([Located(each, self.place) for each in by_text.values()])

    def _types(self) -> Iterable[Node]:
        named = self.schema.get("type")
        if isinstance(named, str):
            yield self._of_type(named)
        elif isinstance(named, list):
            yield Combined(Criterion.ANY, tuple([self._of_type(each) for each in named if isinstance(each, str)]))

    def _kinds(self) -> Iterable[tuple[str, frozenset[str]]]:
        """Keywords that no `type` has claimed speak of values of their kind, if there are any."""
        draft = self.place.draft
        modern = _MODERN if draft.has_siblings_of_references else {}
        later = draft is not Draft.DRAFT_4
        yield "array", _ARRAY | modern.get("array", frozenset()) | ({"contains"} if later else frozenset())
        yield "object", _OBJECT | modern.get("object", frozenset()) | ({"propertyNames"} if later else frozenset())
        yield "number", _NUMBER
        yield "string", _TEXT

    def _of_type(self, kind: str) -> Node:
        keywords = {"integer": "number"}.get(kind, kind)
        self.left.difference_update(dict(self._kinds()).get(keywords, ()))
        makers: dict[str, Callable[[], Node]] = {
            "string": self._text,
            "integer": lambda: self._number(integer=True),
            "number": lambda: self._number(integer=False),
            "boolean": Boolean,
            "null": Null,
            "array": self._array,
            "object": self._object,
        }
        return makers.get(kind, Anything)()

    def _text(self) -> Text:
        pattern = self.schema.get("pattern")
        return Text(self._limits("minLength", "maxLength"), pattern if isinstance(pattern, str) else None)

    def _number(self, *, integer: bool) -> Number:
        limits = self._limits("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        for keyword in ("exclusiveMinimum", "exclusiveMaximum"):
            if self.schema.get(keyword) is True:  # draft 4 has a switch here that changes the other limit
                limits = {**limits, keyword: 0}
        return Number(limits, _number(self.schema.get("multipleOf")), integer)

    def _object(self) -> Object:
        required = self.schema.get("required")
        return Object(
            limits=self._limits("minProperties", "maxProperties"),
            properties=self._children("properties"),
            required=_texts(required),
            patterns=self._children("patternProperties"),
            additional=self._additional("additionalProperties"),
            unevaluated=self._unevaluated("unevaluatedProperties"),
            needed={
                key: _texts(value)
                for keyword in ("dependencies", "dependentRequired")
                for key, value in _object(self.schema.get(keyword)).items()
                if isinstance(value, list)
            },
            dependent={**self._children("dependencies"), **self._children("dependentSchemas")},
        )

    def _array(self) -> Array:
        limits = self._limits("minItems", "maxItems", "minContains", "maxContains")
        if self.place.draft.has_siblings_of_references and "contains" in self.schema:
            limits = {"minContains": 1, **limits}
        first, others = self.schema.get("prefixItems"), "items"
        if not isinstance(first, list):
            first, others = self.schema.get("items"), "additionalItems"
        items = tuple([Located(each, self.place) for each in first]) if isinstance(first, list) else ()
        every = self._located("items") if "items" in self.schema and not isinstance(first, list) else None
        additional = self._additional(others)
        if self.place.draft is Draft.DRAFT_2020_12 and every is not None and isinstance(every.contents, bool):
            additional, every = every.contents, None
        return Array(
            limits=limits,
            unique=self.schema.get("uniqueItems") is True,
            every=every,
            items=items,
            additional=additional,
            unevaluated=self._unevaluated("unevaluatedItems"),
        )

    def _additional(self, keyword: str) -> Located | bool:
        value = self.schema.get(keyword, True)
        return value if isinstance(value, bool) else self._located(keyword)

    def _unevaluated(self, keyword: str) -> Located | None:
        is_known = self.place.draft.has_siblings_of_references and keyword in self.schema
        return self._located(keyword) if is_known else None

    def _located(self, keyword: str) -> Located:
        return Located(self.schema[keyword], self.place)

    def _children(self, keyword: str) -> Mapping[str, Located]:
        """Values of `dependencies` can be lists of names, which are no schemas."""
        children = _object(self.schema.get(keyword))
        return {name: Located(child, self.place) for name, child in children.items() if not isinstance(child, list)}

    def _limits(self, *keywords: str) -> Mapping[str, int | float]:
        found = {keyword: _number(self.schema.get(keyword)) for keyword in keywords}
        return {keyword: value for keyword, value in found.items() if value is not None}


def comparable(value: Json) -> str:
    """A text that is the same for all ways to write one JSON value: 1.0 is 1, and keys have no order."""
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return {key: _whole(item) for key, item in value.items()} if isinstance(value, dict) else value


def _number(value: Json) -> int | float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


def _texts(value: Json) -> frozenset[str]:
    return frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list) else frozenset()


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
