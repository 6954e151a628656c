"""Objects: which properties a reader knows, wants and takes.

A content model is open if others than the named properties may be there with any value, partially open if they must
fit a schema, and closed if there must be none.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.schemas.json_schema.differences import Difference
from moldau.schemas.json_schema.documents import Located
from moldau.schemas.json_schema.limiting import compare_limits
from moldau.schemas.json_schema.nodes import Anything, Node, Nothing, Object
from moldau.schemas.json_schema.patterns import steps_of
from moldau.schemas.json_schema.validating import pattern_found
from moldau.schemas.json_schema.walking import Found, Pair, Walk, Walker, below


def compare_objects(walker: Walker, original: Object, update: Object) -> Walk:
    walker.spend(len(original.properties) + len(update.properties))
    found = _required(walker, original, update)
    for name in sorted({*original.properties, *update.properties}):
        found += below((yield from _property(walker, original, update, name)), "properties", name)
    found += _needed(original, update)
    for name in sorted(update.dependent):
        pair = Pair(original.dependent.get(name), update.dependent[name])
        if pair.original is None:
            found.append(Difference("DEPENDENCY_SCHEMA_ADDED", ("dependencies", name)))
        else:
            found += below((yield pair), "dependencies", name)
    additional = compare_additional(original.additional, update.additional, "ADDITIONAL_PROPERTIES")
    found += below((yield from additional), "additionalProperties")
    unevaluated = compare_unevaluated(walker, original.unevaluated, update.unevaluated, "UNEVALUATED_PROPERTIES")
    found += below((yield from unevaluated), "unevaluatedProperties")
    return found + compare_limits(original.limits, update.limits)


def compare_additional(original: Located | bool, update: Located | bool, stem: str) -> Walk:
    """Values that no keyword before names: any, none, or those that fit a schema."""
    if isinstance(update, bool):
        return [Difference(f"{stem}_REMOVED", ())] if not update and original is not False else []
    if isinstance(original, bool):
        return [Difference(f"{stem}_NARROWED", ())] if original else []
    return (yield Pair(original, update))


def compare_unevaluated(walker: Walker, original: Located | None, update: Located | None, stem: str) -> Walk:
    if update is None:
        return []
    old = Anything() if original is None else walker.original(original)
    new = walker.update(update)
    if isinstance(new, Nothing):
        return [] if isinstance(old, Nothing) else [Difference(f"{stem}_REMOVED", ())]
    if isinstance(old, Nothing):
        return []
    if original is None or (isinstance(old, Anything) and not isinstance(new, Anything)):
        return [Difference(f"{stem}_NARROWED", ())]
    return [] if isinstance(new, Anything) else (yield Pair(original, update))


def _required(walker: Walker, original: Object, update: Object) -> Found:
    """Of properties that both know; a default does for a value that older writers left out."""
    return [
        Difference("REQUIRED_ATTRIBUTE_ADDED", ("required", name))
        for name in sorted(update.required - original.required)
        if name in original.properties
        and name in update.properties
        and not walker.update(update.properties[name]).notes.has_default
    ]


def _property(walker: Walker, original: Object, update: Object, name: str) -> Walk:
    if name not in update.properties:
        return (yield from _removed(walker, original.properties[name], update, name))
    if name not in original.properties:
        return (yield from _added(walker, original, update, name))
    return (yield Pair(original.properties[name], update.properties[name]))


def _removed(walker: Walker, schema: Located, update: Object, name: str) -> Walk:
    """What the reader's content model takes may be removed from its properties."""
    if _is_open(update, walker.update):
        return []
    walker.spend(steps_of(update.patterns, name))
    covering = _covering(update, walker.update, name)
    if covering is not None:
        found = yield Pair(schema, covering)
        return [*found, Difference("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", ())] if found else []
    if isinstance(walker.original(schema), Nothing):
        return []
    return [Difference("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", ())]


def _added(walker: Walker, original: Object, update: Object, name: str) -> Walk:
    """What the writer's content model took may have been of any type until now."""
    schema = update.properties[name]
    node = walker.update(schema)
    required, has_default = name in update.required, node.notes.has_default
    if _is_open(original, walker.original):
        if isinstance(node, Anything):
            return []
        what = "REQUIRED_PROPERTY_WITH_DEFAULT" if has_default else "REQUIRED_PROPERTY"
        return [Difference(f"{what if required else 'OPTIONAL_PROPERTY'}_ADDED_TO_OPEN_CONTENT_MODEL", ())]
    found: Found = []
    walker.spend(steps_of(original.patterns, name))
    covering = _covering(original, walker.original, name)
    if covering is not None:
        found = list((yield Pair(covering, schema)))
        if found:
            found.append(Difference("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", ()))
    if required and not has_default:
        found.append(Difference("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", ()))
    return found


def _needed(original: Object, update: Object) -> Found:
    """Properties that others bring along."""
    found = []
    for name, needed in sorted(update.needed.items()):
        before = original.needed.get(name)
        if before is None:
            found.append(Difference("DEPENDENCY_ARRAY_ADDED", ("dependencies", name)))
        elif not needed <= before:
            kind = "DEPENDENCY_ARRAY_EXTENDED" if before < needed else "DEPENDENCY_ARRAY_CHANGED"
            found.append(Difference(kind, ("dependencies", name)))
    return found


def _is_open(model: Object, node: Callable[[Located], Node]) -> bool:
    if model.additional is not True or model.patterns:
        return False
    return model.unevaluated is None or isinstance(node(model.unevaluated), Anything)


def _covering(model: Object, node: Callable[[Located], Node], name: str) -> Located | None:
    """The schema that a property without a name of its own must fit."""
    for pattern, schema in model.patterns.items():
        if pattern_found(pattern, name):
            return schema
    if isinstance(model.additional, Located):
        return model.additional
    return None if model.additional is False else fitted(model.unevaluated, node)


def fitted(unevaluated: Located | None, node: Callable[[Located], Node]) -> Located | None:
    """A schema that says something."""
    says_all = unevaluated is None or isinstance(node(unevaluated), Anything | Nothing)
    return None if says_all else unevaluated
