"""How pairs of schemas are walked: on a stack of our own, each pair once, and around cycles.

References make the depth of two schemas together unbounded, so what compares hands out the pairs that it needs compared
and is resumed with what was found. A pair that is met again inside itself is taken as compatible; where that was taken
of a pair that then turned out not to be, the walk is done again with what is known, until nothing new is found.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from moldau.core import limits
from moldau.schemas.json_schema.differences import Difference
from moldau.schemas.json_schema.documents import Located
from moldau.schemas.json_schema.modeling import Modeler
from moldau.schemas.json_schema.nodes import Node

Found = list[Difference]
Schema = Located | Node
Walk = Generator["Pair", Found, Found]
Key = tuple[int, int]


_REVERSALS_MAX = 10  # of `not` in `not`: each is a walk inside the other


@dataclass(frozen=True, slots=True)
class Pair:
    """What was, and what it became; None where there is no schema."""

    original: Schema | None
    update: Schema | None


class TooMuch(Exception):
    """The comparison takes more steps than are allowed."""


@dataclass(slots=True)
class Walker:
    """Compares by `compare`, which is given two nodes that are no references."""

    compare: Callable[[Walker, Node, Node], Walk]
    originals: Modeler
    updates: Modeler
    steps: int = limits.SCHEMA_STEPS_MAX
    reversals: int = 0
    memo: dict[Key, Found] = field(default_factory=dict)
    known: dict[Key, Found] = field(default_factory=dict)
    under_way: set[Key] = field(default_factory=set)
    assumed: bool = False

    def walk(self, pair: Pair) -> Found:
        """Raises TooMuch, and InvalidSchema for a reference that leads nowhere."""
        while True:
            self.assumed = False
            self.memo.clear()
            found = self._run(pair)
            incompatible = {key: value for key, value in self.memo.items() if value}
            if not self.assumed or incompatible.keys() == self.known.keys():
                return found
            self.known = incompatible

    def covers_reversed(self, original: Schema, update: Schema) -> bool:
        """Whether what is refused now was refused before: the same question, with the two schemas changed round."""
        if self.reversals == _REVERSALS_MAX:
            raise TooMuch
        other = Walker(self.compare, self.updates, self.originals, steps=self.steps, reversals=self.reversals + 1)
        found = other.walk(Pair(update, original))
        self.steps = other.steps
        return not found

    def original(self, schema: Schema) -> Node:
        return self.originals.node(schema)

    def update(self, schema: Schema) -> Node:
        return self.updates.node(schema)

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise TooMuch

    def _run(self, pair: Pair) -> Found:
        walks = [self._judged(pair)]
        found: Found | None = None
        while walks:
            try:
                needed = next(walks[-1]) if found is None else walks[-1].send(found)
            except StopIteration as end:
                found = end.value
                walks.pop()
            else:
                found = None
                walks.append(self._judged(needed))
        assert found is not None, "the first walk ends with what it found"
        return found

    def _judged(self, pair: Pair) -> Walk:
        self.spend(1)
        if pair.original is None or pair.update is None:
            return [] if pair.update is None else [Difference("SCHEMA_ADDED", ())]
        original = self.originals.target(self.original(pair.original))
        update = self.updates.target(self.update(pair.update))
        key = (id(original), id(update))
        if key in self.memo:
            return self.memo[key]
        if key in self.under_way:
            self.assumed = self.assumed or key not in self.known
            return self.known.get(key, [])
        self.under_way.add(key)
        found = (yield from self.compare(self, original, update))[: limits.INCOMPATIBILITIES_MAX]
        self.under_way.discard(key)
        self.memo[key] = found
        return found


def below(found: Found, *path: str) -> Found:
    """The same differences, seen from further up."""
    return [each.below(path) for each in found]
