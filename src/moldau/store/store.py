"""The metadata store: one log that every broker reads and only the elected controller may append to.

An entry is opaque bytes; its position is its number, from 1. A snapshot stands for all entries up to its position.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

START = 0  # the position before the first entry


class StoreError(Exception):
    """The store can't be used; the message says what and where."""


class Fenced(StoreError):
    """Another controller was elected: whoever sees this must stop deciding."""


class CorruptStore(StoreError):
    """What was read is not what was written, or was never ours."""


class StoreFailed(StoreError):
    """The disk failed the store: what it holds is known only after it was read anew."""


@dataclass(frozen=True, slots=True)
class MetadataEntry:
    position: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Tail:
    """What happened after a position. With a snapshot, the reader starts again from it: the entries before are gone."""

    snapshot: MetadataEntry | None
    entries: Sequence[MetadataEntry]

    @property
    def end(self) -> int | None:
        """The position of the last thing in here, or None when there is nothing new."""
        if self.entries:
            return self.entries[-1].position
        return self.snapshot.position if self.snapshot else None


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker that is alive, for as long as its process is and keeps saying so."""

    broker_id: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class ControllerAndEpoch:
    """Who controls, and under which epoch; every election has a higher one."""

    broker_id: int
    epoch: int


class MetadataStore(Protocol):
    async def append(self, payload: bytes, *, controller_epoch: int, may_take_reserve: bool = False) -> int:
        """Durable when it returns the entry's position. Raises Fenced when the epoch is no longer the current one.

        One that `may_take_reserve` is written on a full disk, too, as long as what is reserved there lasts.
        """
        ...

    async def read(self, position: int) -> Tail:
        """Everything after a position."""
        ...

    async def snapshot(self, payload: bytes, *, position: int, controller_epoch: int) -> None:
        """Replace all entries up to a position by what they amount to. Fenced like an append."""
        ...

    def watch(self, position: int) -> AsyncIterator[int]:
        """The position of the newest entry, whenever there is a newer one than last time."""
        ...

    async def register(self, registration: Registration) -> None:
        """Hold this registration until close. Raises StoreError when a living process has the same broker id."""
        ...

    async def registrations(self) -> Sequence[Registration]:
        """The brokers that are alive now."""
        ...

    async def elect(self, broker_id: int) -> ControllerAndEpoch:
        """The living controller, or this registered broker, elected because there was none."""
        ...

    async def resign(self, leadership: ControllerAndEpoch) -> None:
        """Let another be elected without waiting. Does nothing when it has happened already."""
        ...

    async def close(self) -> None: ...
