"""The metadata store: one log that every broker reads and only the elected controller may append to.

An entry is opaque bytes; its position is its number, from 1. A snapshot stands for all entries up to its position.
A broker is known by its registration, which ends with its session: soon after its process ended, or stopped answering.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

START = 0  # the position before the first entry

SESSION_TIMEOUT_MS = 9_000  # Kafka's broker.session.timeout.ms


class StoreError(Exception):
    """The store can't be used; the message says what and where."""


class Fenced(StoreError):
    """Another controller was elected, or may be: whoever sees this must stop deciding."""


class CorruptStore(StoreError):
    """What was read is not what was written, or was never ours."""


class StoreFailed(StoreError):
    """The disk failed the store: what it holds is known only after it was read anew."""


class MetadataEntry(msgspec.Struct, frozen=True):
    position: int
    payload: bytes


class Tail(msgspec.Struct, frozen=True):
    """What happened after a position. With a snapshot, the reader starts again from it: the entries before are gone."""

    snapshot: MetadataEntry | None
    entries: Sequence[MetadataEntry]

    @property
    def end(self) -> int | None:
        """The position of the last thing in here, or None when there is nothing new."""
        if self.entries:
            return self.entries[-1].position
        return self.snapshot.position if self.snapshot else None


class DescribedEndpoint(msgspec.Struct, frozen=True):
    listener: str
    security_protocol: str
    host: str
    port: int


class Description(msgspec.Struct, frozen=True):
    """What operators look for in a registration where they can read it. No broker reads it: that is the payload's."""

    cluster_id: str = ""
    endpoints: tuple[DescribedEndpoint, ...] = ()
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker that is alive, for as long as its session is."""

    broker_id: int
    payload: bytes
    description: Description = field(default=Description(), compare=False, repr=False)


class ControllerAndEpoch(msgspec.Struct, frozen=True):
    """Who controls, and under which epoch; every election has a higher one."""

    broker_id: int
    epoch: int


class MetadataStore(Protocol):
    on_session_lost: Callable[[], None] | None
    """Called on the loop, once for each session, when this broker's registration is gone or may be.

    The broker must stop leading and deciding at once, and may register anew. It is called before another broker can
    be elected in this one's place wherever the store's own clock allows; a process that was stopped is called when it
    goes on, and until it was elected again its appends are Fenced.
    """

    async def append(self, payload: bytes, *, controller_epoch: int, may_take_reserve: bool = False) -> int:
        """Durable when it returns the entry's position. Raises Fenced when the epoch is no longer the current one.

        One that `may_take_reserve` is written on a full disk, too, as long as what is reserved there lasts. After
        Fenced and other errors the entry may be there or not, as reading tells.
        """
        ...

    async def read(self, position: int) -> Tail:
        """Everything after a position that was there when this was called."""
        ...

    async def snapshot(self, payload: bytes, *, position: int, controller_epoch: int) -> None:
        """Replace all entries up to a position by what they amount to. Fenced like an append."""
        ...

    def watch(self, position: int) -> AsyncIterator[int]:
        """The position of the newest entry, whenever there is a newer one than last time."""
        ...

    async def register(self, registration: Registration) -> None:
        """Hold this registration until close, or until the session is lost; a store holds one.

        Raises StoreError when a living process has the same broker id.
        """
        ...

    async def update(self, registration: Registration) -> None:
        """Give the registration that is held another payload."""
        ...

    async def registrations(self) -> Sequence[Registration]:
        """The brokers that are alive now, by their ids."""
        ...

    def watch_registrations(self) -> AsyncIterator[Sequence[Registration]]:
        """The brokers that are alive, at once and whenever one came, went or was updated."""
        ...

    async def evict(self, registration: Registration) -> bool:
        """End the session of this very registration without waiting for it; whether it was there.

        For whoever has evidence that the process ended. If it lives, its session is lost, and its appends are Fenced.
        """
        ...

    async def elect(self, broker_id: int) -> ControllerAndEpoch:
        """The living controller, or this registered broker, elected because there was none or it was that one."""
        ...

    def watch_controller(self) -> AsyncIterator[ControllerAndEpoch | None]:
        """The living controller, at once and whenever there is another, or none."""
        ...

    async def resign(self, leadership: ControllerAndEpoch) -> None:
        """Let another be elected without waiting. Does nothing when it has happened already."""
        ...

    async def close(self) -> None: ...
