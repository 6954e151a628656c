"""What a reader's JSON Schema refuses of what a writer's allowed: the rules of Confluent's registry.

The writer's schema is the original, the reader's its update. Only incompatible differences are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from moldau.schemas.json_schema.arrays import compare_arrays
from moldau.schemas.json_schema.combining import compare_combined, covered_by_combination
from moldau.schemas.json_schema.differences import Difference, told
from moldau.schemas.json_schema.documents import Located
from moldau.schemas.json_schema.limiting import compare_limits
from moldau.schemas.json_schema.modeling import Modeler
from moldau.schemas.json_schema.nodes import (
    Anything,
    Array,
    Combined,
    Constant,
    Node,
    Not,
    Nothing,
    Number,
    Object,
    Text,
    Values,
)
from moldau.schemas.json_schema.objects import compare_objects
from moldau.schemas.json_schema.walking import Found, Pair, TooMuch, Walk, Walker
from moldau.schemas.model import Incompatibility


def incompatibilities(reader: Located, writer: Located) -> Sequence[Incompatibility]:
    """Empty if the reader takes everything. Raises InvalidSchema for a reference that leads nowhere."""
    try:
        found = Walker(_compare, Modeler(), Modeler()).walk(Pair(writer, reader))
    except TooMuch:
        found = [Difference("TOO_COMPLEX", ())]
    return [told(each) for each in dict.fromkeys(found)]


def _compare(walker: Walker, original: Node, update: Node) -> Walk:
    if isinstance(original, Combined) != isinstance(update, Combined) and (
        yield from covered_by_combination(original, update)
    ):
        return []
    if type(original) is not type(update):
        return _other_type(original, update)
    if isinstance(original, Combined) and isinstance(update, Combined):
        return (yield from compare_combined(walker, original, update))
    if isinstance(original, Object) and isinstance(update, Object):
        return (yield from compare_objects(walker, original, update))
    if isinstance(original, Array) and isinstance(update, Array):
        return (yield from compare_arrays(walker, original, update))
    if isinstance(original, Not) and isinstance(update, Not):
        covers = walker.covers_reversed(original.node, update.node)
        return [] if covers else [Difference("NOT_TYPE_EXTENDED", ("not",))]
    return _leaves(original, update)


def _other_type(original: Node, update: Node) -> Found:
    if isinstance(original, Nothing) or isinstance(update, Anything):
        return []
    if original.notes.is_connect_bytes and update.notes.is_connect_bytes:
        return []  # Connect's converters write bytes as texts or numbers, and both read either
    return [Difference("TYPE_CHANGED", ())]


def _leaves(original: Node, update: Node) -> Found:
    if isinstance(original, Text) and isinstance(update, Text):
        return [*compare_limits(original.limits, update.limits), *_patterns(original.pattern, update.pattern)]
    if isinstance(original, Number) and isinstance(update, Number):
        found = compare_limits(original.limits, update.limits)
        found += _multiples(original.multiple_of, update.multiple_of)
        return [*found, Difference("TYPE_NARROWED", ())] if update.integer and not original.integer else found
    if isinstance(original, Constant) and isinstance(update, Constant):
        return [] if original.value == update.value else [Difference("ENUM_ARRAY_CHANGED", ("const",))]
    if isinstance(original, Values) and isinstance(update, Values):
        return _values(original.values, update.values)
    return []


def _patterns(original: str | None, update: str | None) -> Found:
    if update is None or original == update:
        return []
    return [Difference("PATTERN_ADDED" if original is None else "PATTERN_CHANGED", ("pattern",))]


def _values(original: frozenset[str], update: frozenset[str]) -> Found:
    if original <= update:
        return []
    return [Difference("ENUM_ARRAY_NARROWED" if update < original else "ENUM_ARRAY_CHANGED", ("enum",))]


def _multiples(original: int | float | None, update: int | float | None) -> Found:
    if update is None or original == update:
        return []
    if original is None:
        return [Difference("MULTIPLE_OF_ADDED", ("multipleOf",))]
    try:
        old, new = _exact(original), _exact(update)
    except (ValueError, OverflowError):
        return [Difference("MULTIPLE_OF_CHANGED", ("multipleOf",))]
    if old and new % old == 0:
        return [Difference("MULTIPLE_OF_EXPANDED", ("multipleOf",))]
    if new and old % new == 0:
        return []
    return [Difference("MULTIPLE_OF_CHANGED", ("multipleOf",))]


def _exact(number: int | float) -> Fraction:
    """What is written, 0.1, and not the double next to it."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))
