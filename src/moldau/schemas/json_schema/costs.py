"""How often schemas are applied when a value is judged: combinations inside one another double it with every level.

The library that judges can't be interrupted, and it judges one part of a value by one schema as often as it gets there.
So the number of times is counted first, each pair of a schema and a value once, and what takes too long is refused.
A schema without references can't grow like that, and needs no counting.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from moldau.core import limits
from moldau.schemas.json_schema.documents import Located
from moldau.schemas.json_schema.patterns import matching
from moldau.schemas.json_text import objects
from moldau.schemas.model import InvalidSchema, InvalidValue, Json

# Keywords whose schemas are applied to the value itself, to each of its items or properties, or to those of one name.
_ITSELF = frozenset({"not", "if", "then", "else"})
_ITSELF_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
_ITSELF_NAMED = frozenset({"dependencies", "dependentSchemas"})
_PROPERTIES = frozenset({"additionalProperties", "unevaluatedProperties"})
_ITEMS = frozenset({"items", "additionalItems", "contains", "unevaluatedItems", "prefixItems"})
_REFERENCES = frozenset({"$ref", "$recursiveRef", "$dynamicRef"})

Count = Generator["_Use", int, int]


@dataclass(frozen=True, slots=True)
class _Use:
    schema: Located
    value: Json


@dataclass(slots=True)
class Costs:
    """Of one value. The stack is our own, since a schema and a value are deeper together than either."""

    counted: dict[tuple[int, int], int] = field(default_factory=dict)
    matched: int = 0
    """Work of patterns."""
    kept: list[object] = field(default_factory=list)

    def count(self, schema: Located, value: Json) -> int:
        """Raises InvalidValue where the limit is passed, and for a schema that applies itself to the same value."""
        counts = [self._count(_Use(schema, value))]
        result: int | None = None
        while counts:
            try:
                needed = next(counts[-1]) if result is None else counts[-1].send(result)
            except StopIteration as end:
                result = end.value
                counts.pop()
            else:
                result = None
                counts.append(self._count(needed))
        assert result is not None, "the first count ends with a number"
        return result

    def _count(self, use: _Use) -> Count:
        contents = use.schema.contents
        if not isinstance(contents, dict):
            return 1
        key = (id(contents), id(use.value))
        if key in self.counted:
            if self.counted[key] < 0:
                raise InvalidValue("its schema refers to itself for one and the same value")
            return self.counted[key]
        if len(self.counted) > limits.JSON_EVALUATIONS_MAX:
            raise InvalidValue("it takes too long to compare with its schema")
        self.matched += matching(contents, use.value)
        if self.matched > limits.JSON_MATCHING_MAX:
            raise InvalidValue("it takes too long to compare with the patterns of its schema")
        self.kept.append((contents, use.value))
        self.counted[key] = -1
        total = 1
        place = use.schema.place.inside(contents)
        for needed in _uses(contents, Located(contents, place), use.value):
            total += yield needed
            if total > limits.JSON_EVALUATIONS_MAX:
                raise InvalidValue("it takes too long to compare with its schema")
        self.counted[key] = total
        return total


def _uses(contents: dict[str, Json], schema: Located, value: Json) -> Iterator[_Use]:
    """More than are needed rather than less: a keyword counts for all values that it could be applied to."""
    for keyword, said in contents.items():
        if keyword in _REFERENCES and isinstance(said, str):
            try:
                yield _Use(schema.place.follow(said), value)
            except InvalidSchema as error:
                raise InvalidValue(str(error)) from None
        elif keyword in _ITSELF:
            yield _Use(Located(said, schema.place), value)
        elif keyword in _ITSELF_LISTS and isinstance(said, list):
            yield from (_Use(Located(each, schema.place), value) for each in said)
        elif keyword in _ITSELF_NAMED and isinstance(said, dict):
            yield from (_Use(Located(each, schema.place), value) for each in said.values())
        else:
            yield from _uses_inside(keyword, said, schema, value)


def _uses_inside(keyword: str, said: Json, schema: Located, value: Json) -> Iterator[_Use]:
    if isinstance(value, list) and keyword in _ITEMS:
        if isinstance(said, list):
            yield from (_Use(Located(each, schema.place), item) for each, item in zip(said, value, strict=False))
        else:
            yield from (_Use(Located(said, schema.place), item) for item in value)
    elif isinstance(value, dict) and keyword in _PROPERTIES:
        yield from (_Use(Located(said, schema.place), item) for item in value.values())
    elif isinstance(value, dict) and isinstance(said, dict):
        if keyword == "propertyNames":
            yield from (_Use(Located(said, schema.place), name) for name in value)
        elif keyword == "properties":
            yield from (_Use(Located(said[name], schema.place), item) for name, item in value.items() if name in said)
        elif keyword == "patternProperties":
            for each in said.values():
                yield from (_Use(Located(each, schema.place), item) for item in value.values())


def may_multiply(contents: Json) -> bool:
    """Whether a schema may be larger than its text: without references each part of it stands for itself."""
    return any(not schema.keys().isdisjoint(_REFERENCES) for schema in objects(contents))
