"""What the store needs of a service for consensus: nodes with versions, transactions, sessions, and watches.

A node's version changes whenever its data does. An ephemeral node belongs to a session and goes with it. All times are
of `elapsed_s`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, TypeVar

from moldau.store.store import StoreError
from moldau.store.tree.connect_string import ConnectString

NO_SESSION = 0

T = TypeVar("T")


class Unreachable(StoreError):
    """No server has answered for some time."""


class Unanswered(Exception):
    """The request may have been carried out, or not, or the session is another one."""


class NoNode(Exception):
    """There is no such node."""


class Refusal(Enum):
    EXISTS = "the node is there"
    MISSING = "there is no such node"
    CHANGED = "the node has another version"


class TransactionRefused(Exception):
    """Nothing of a transaction was done, because of one of its operations."""

    def __init__(self, index: int, reason: Refusal) -> None:
        super().__init__(f"operation {index}: {reason.value}")
        self.index = index
        self.reason = reason


class Node(NamedTuple):
    data: bytes
    version: int
    session_id: int  # or NO_SESSION


@dataclass(frozen=True, slots=True)
class Check:
    """The node is there, with this version if one is given."""

    path: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """Of a node that is there, with this version if one is given."""

    path: str
    data: bytes
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int | None = None


Operation = Check | Create | Change | Delete


class Signal:
    """Tells the loop that a node may have changed."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def fire(self, _event: object = None) -> None:
        """On any thread, when a watch is triggered and when the connection is lost."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
            self._loop.call_soon_threadsafe(self._wake)

    def next(self) -> asyncio.Event:
        """To be asked for before the node is read: it is set by a change after that."""
        return self._event

    def _wake(self) -> None:
        event, self._event = self._event, asyncio.Event()
        event.set()


class TreeClient(Protocol):
    """One session after the other. Paths begin at the chroot. What is not sent `once` is sent until it is answered."""

    service: str  # its name
    servers: ConnectString
    session_timeout_s: float
    session_id: int | None
    prolonged_s: float
    """When the last request was sent that prolonged the session and was answered."""
    on_session_ended: Callable[[], None] | None

    @property
    def is_connected(self) -> bool: ...

    async def get(self, path: str, *, watch: Signal | None = None) -> Node:
        """Raises NoNode."""
        ...

    async def find(self, path: str, *, watch: Signal | None = None) -> Node | None:
        """What a node holds; None when there is no such node, and then the watch waits for its creation."""
        ...

    async def find_once(self, path: str) -> Node | None:
        """Raises Unanswered."""
        ...

    async def children(self, path: str, *, watch: Signal | None = None) -> list[str]: ...

    async def catch_up(self) -> None:
        """What is read afterwards is at least what was there when this was called."""
        ...

    async def commit(self, *operations: Operation) -> None:
        """All operations or none, if need be again and again. Raises TransactionRefused."""
        ...

    async def commit_once(self, *operations: Operation) -> None:
        """All operations or none. Raises TransactionRefused or Unanswered."""
        ...

    async def prepare(self, path: str) -> None:
        """Make a node without data, and those above it up to the root, unless they are there."""
        ...

    async def connected(self) -> None:
        """Raises Unreachable when there was no connection for a session's time-out."""
        ...

    def drop_connection(self) -> None:
        """For one that does not answer."""
        ...

    async def stop(self) -> None: ...


async def patiently(read: Callable[[], Awaitable[T]]) -> T:
    """For whoever watches, and only wants to know what comes next."""
    while True:
        with contextlib.suppress(Unreachable):
            return await read()
