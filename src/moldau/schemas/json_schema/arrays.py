"""Arrays: items by their place, those that follow, and how many there may be. Content models are objects'."""

from __future__ import annotations

from collections.abc import Callable

from moldau.schemas.json_schema.differences import Difference
from moldau.schemas.json_schema.documents import Located
from moldau.schemas.json_schema.limiting import compare_limits
from moldau.schemas.json_schema.nodes import Anything, Array, Node, Nothing
from moldau.schemas.json_schema.objects import compare_additional, compare_unevaluated, fitted
from moldau.schemas.json_schema.walking import Found, Pair, Walk, Walker, below


def compare_arrays(walker: Walker, original: Array, update: Array) -> Walk:
    walker.spend(len(original.items) + len(update.items))
    found = below((yield Pair(original.every, update.every)), "items")
    for index in range(max(len(original.items), len(update.items))):
        if index >= len(update.items):
            walk = _removed(walker, original.items[index], update)
        elif index >= len(original.items):
            walk = _added(walker, original, update.items[index])
        else:
            walk = _both(Pair(original.items[index], update.items[index]))
        found += below((yield from walk), "items", str(index))
    additional = compare_additional(original.additional, update.additional, "ADDITIONAL_ITEMS")
    found += below((yield from additional), "additionalItems")
    unevaluated = compare_unevaluated(walker, original.unevaluated, update.unevaluated, "UNEVALUATED_ITEMS")
    found += below((yield from unevaluated), "unevaluatedItems")
    found += compare_limits(original.limits, update.limits)
    if update.unique and not original.unique:
        found.append(Difference("UNIQUE_ITEMS_ADDED", ("uniqueItems",)))
    return found


def _both(pair: Pair) -> Walk:
    return (yield pair)


def _removed(walker: Walker, schema: Located, update: Array) -> Walk:
    if _is_open(update, walker.update):
        return []
    covering = _covering(update, walker.update)
    if covering is not None:
        found = yield Pair(schema, covering)
        return [*found, Difference("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", ())] if found else []
    if isinstance(walker.original(schema), Nothing):
        return []
    return [Difference("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", ())]


def _added(walker: Walker, original: Array, schema: Located) -> Walk:
    if _is_open(original, walker.original):
        is_any = isinstance(walker.update(schema), Anything)
        return [] if is_any else [Difference("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", ())]
    covering = _covering(original, walker.original)
    if covering is None:
        return []
    found: Found = yield Pair(covering, schema)
    return [*found, Difference("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", ())] if found else []


def _is_open(model: Array, node: Callable[[Located], Node]) -> bool:
    if model.additional is not True:
        return False
    return model.unevaluated is None or isinstance(node(model.unevaluated), Anything)


def _covering(model: Array, node: Callable[[Located], Node]) -> Located | None:
    """The schema that an item without a place of its own must fit."""
    if isinstance(model.additional, Located):
        return model.additional
    return None if model.additional is False else fitted(model.unevaluated, node)
