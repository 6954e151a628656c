"""Requests of any API in which one array, at any depth, is as long as it may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from msgspec import Struct

from moldau.wire.schema import Field, Kind, fields_of

Path: TypeAlias = tuple[str, ...]
Value: TypeAlias = Callable[[Field, int, bool], Any]
"""Of a field, in which element of its array, and whether that one has no others beside it."""


def paths(cls: type[Struct], version: int) -> Iterator[Path]:
    """Every array of a message, at any depth."""
    for field in fields_of(cls):
        if field.is_array and version in field.versions:
            yield (field.name,)
            if not isinstance(field.type, Kind):
                yield from ((field.name, *rest) for rest in paths(field.type, version))


def elements(made: Any) -> int:
    """How many there are in all arrays of a message together, which is what is limited."""
    if isinstance(made, list):
        return len(made) + sum(elements(each) for each in made if isinstance(each, Struct))
    return sum(elements(each) for name in made.__struct_fields__ if isinstance(each := getattr(made, name), list))


def longest(cls: Any, version: int, path: Path, *, elements_max: int, count: int, value: Value) -> Any:
    """A request with at most `count` elements at the path, one in the arrays around it and one in those below."""
    while True:
        made = _struct(cls, version, path, index=0, count=count, is_alone=True, value=value)
        if elements(made) < elements_max:
            return made
        count = count * 9 // 20


def _struct(
    cls: type[Struct], version: int, path: Path, *, index: int, count: int, is_alone: bool, value: Value
) -> Any:
    values: dict[str, Any] = {}
    for field in fields_of(cls):
        if version not in field.versions:
            continue
        if field.is_array:
            values[field.name] = _array(field, version, path, count=count, value=value)
        elif isinstance(field.type, Kind):
            values[field.name] = value(field, index, is_alone)
    return cls(**values)


def _array(field: Field, version: int, path: Path, *, count: int, value: Value) -> Any:
    length, rest = 1, path[1:]
    if path and field.name == path[0]:
        length = 1 if rest else count
    elif path:
        return None if field.is_nullable_in(version) else []
    is_alone = length == 1
    if isinstance(field.type, Kind):
        return [value(field, index, is_alone) for index in range(length)]
    return [
        _struct(field.type, version, rest, index=index, count=count, is_alone=is_alone, value=value)
        for index in range(length)
    ]
