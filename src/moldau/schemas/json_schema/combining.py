"""`allOf`, `anyOf` and `oneOf`, and the keywords of several kinds in one schema, which must all hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from moldau.schemas.json_schema.differences import Difference
from moldau.schemas.json_schema.nodes import Combined, Criterion, Node
from moldau.schemas.json_schema.walking import Pair, Walk, Walker


def covered_by_combination(original: Node, update: Node) -> Walk:
    """Of a schema and a combination, whether the part that counts covers the other: something, if so.

    A combination of one is that one; a sum takes what one of its parts takes; and what all parts of a product took,
    each of them took.
    """
    if isinstance(update, Combined):
        parts = update.nodes if len(update.nodes) == 1 or update.criterion is not Criterion.ALL else ()
        pairs = [Pair(original, part) for part in parts]
    else:
        assert isinstance(original, Combined), "one of the two is a combination"
        parts = original.nodes if len(original.nodes) == 1 or original.criterion is Criterion.ALL else ()
        pairs = [Pair(part, update) for part in parts]
    for pair in pairs:
        if not (yield pair):
            return [_COVERED]
    return []


_COVERED = Difference("TYPE_CHANGED", ())  # any would do: it only says that something was found


def compare_combined(walker: Walker, original: Combined, update: Combined) -> Walk:
    """Each part of the smaller combination needs one of the larger for itself."""
    if not _may_become(original, update):
        return [Difference("COMBINED_TYPE_CHANGED", ())]
    found = _sizes(original, update)
    edges: dict[int, list[int]] = {}
    for old, before in enumerate(original.nodes):
        for new, after in enumerate(update.nodes):
            walker.spend(1)
            if not (yield Pair(before, after)):
                edges.setdefault(old, []).append(new)
    if matching_size(walker, edges) < min(len(original.nodes), len(update.nodes)):
        found.append(Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED", ()))
    return found


def _may_become(original: Combined, update: Combined) -> bool:
    was_one, is_one = len(original.nodes) == 1, len(update.nodes) == 1
    return (
        original.criterion is update.criterion
        or update.criterion is Criterion.ANY
        or (was_one and is_one)
        or (was_one and update.criterion is Criterion.ONE)
        or (is_one and original.criterion is Criterion.ALL)
    )


def _sizes(original: Combined, update: Combined) -> list[Difference]:
    """More parts of a product, or fewer of a sum, take less."""
    if len(original.nodes) < len(update.nodes) and update.criterion is Criterion.ALL:
        return [Difference("PRODUCT_TYPE_EXTENDED", ())]
    if len(original.nodes) > len(update.nodes) and original.criterion is not Criterion.ALL:
        return [Difference("SUM_TYPE_NARROWED", ())]
    return []


def matching_size(walker: Walker, edges: Mapping[int, Sequence[int]]) -> int:
    """How many pairs can be made at most, each part in one of them."""
    partners: dict[int, int] = {}
    for start in edges:
        path = _augmenting_path(walker, edges, partners, start)
        partners.update((new, old) for old, new in path)
    return len(partners)


def _augmenting_path(
    walker: Walker, edges: Mapping[int, Sequence[int]], partners: Mapping[int, int], start: int
) -> list[tuple[int, int]]:
    """Pairs that, made instead of theirs, leave a place for one more; none if there is no such place."""
    reached_from: dict[int, int] = {}
    left_by: dict[int, int] = {}
    waiting = deque([start])
    while waiting:
        old = waiting.popleft()
        for new in edges.get(old, ()):
            walker.spend(1)
            if new in reached_from:
                continue
            reached_from[new] = old
            if new not in partners:
                return _back(reached_from, left_by, new)
            left_by[partners[new]] = new
            waiting.append(partners[new])
    return []


def _back(reached_from: Mapping[int, int], left_by: Mapping[int, int], new: int) -> list[tuple[int, int]]:
    path = []
    while True:
        old = reached_from[new]
        path.append((old, new))
        if old not in left_by:
            return path
        new = left_by[old]
