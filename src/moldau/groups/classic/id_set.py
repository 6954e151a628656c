"""A set of ids that changes into another one at the same small cost, however many there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

import msgspec

# A change copies this many references, and one part of this many of the ids.
PARTS = 256


class IdSet(msgspec.Struct, frozen=True):
    """An immutable value. Whoever asks for ids and never uses them makes many, and none may cost a copy of all."""

    parts: tuple[frozenset[str], ...] = (frozenset(),) * PARTS
    size: int = 0

    @classmethod
    def of(cls, *ids: str) -> Self:
        return cls().with_ids(ids)

    def __len__(self) -> int:
        return self.size

    def __contains__(self, one: str) -> bool:
        return one in self.parts[hash(one) % PARTS]

    def __iter__(self) -> Iterator[str]:
        for part in self.parts:
            yield from part

    def with_ids(self, ids: Iterable[str]) -> Self:
        new = {one for one in ids if one not in self}
        return self if not new else self._toggled(new, len(new))

    def without(self, ids: Iterable[str]) -> Self:
        gone = {one for one in ids if one in self}
        return self if not gone else self._toggled(gone, -len(gone))

    def _toggled(self, ids: Iterable[str], growth: int) -> Self:
        """Those that are in it are out, and the other way round."""
        parts = list(self.parts)
        for one in ids:
            parts[hash(one) % PARTS] ^= {one}
        return type(self)(tuple(parts), self.size + growth)
