"""A member of a classic group, and what a client says when it wants to be one."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

import msgspec


class Protocol(NamedTuple):
    """An assignment strategy that a client knows; the bytes are between the clients, a subscription most often."""

    name: str
    metadata: bytes


class Member(msgspec.Struct, frozen=True):
    """One client of a group."""

    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[Protocol, ...]
    """In the order of the client's preference."""
    instance_id: str | None = None
    """Set for a static member, which keeps its place through restarts."""
    assignment: bytes = b""
    is_new: bool = False
    """No generation had it yet, so that nothing but its time limit ends its waiting."""
    is_joining: bool = False
    """Its JoinGroup waits for the others."""
    is_syncing: bool = False
    """Its SyncGroup waits for the leader's."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """Whoever waits for us needs no heartbeat."""
        return not self.is_new and (self.is_joining or self.is_syncing)

    def metadata(self, protocol_name: str) -> bytes:
        return next(each.metadata for each in self.protocols if each.name == protocol_name)

    def vote(self, candidates: Container[str]) -> str:
        return next(each.name for each in self.protocols if each.name in candidates)


class Joining(msgspec.Struct, frozen=True, kw_only=True):
    """A JoinGroup request in the coordinator's words."""

    group_id: str
    member_id: str = ""
    new_member_id: str
    """The id to give if it has none. Chance comes in as an argument."""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    must_know_id: bool = True
    """A new client is told its id first and joins with it; before version 4 it joins at once."""
    may_skip_assignment: bool = True
    """From version 9 a leader can be told that the assignment is there already."""


def member_of(joining: Joining, member_id: str) -> Member:
    return Member(
        member_id=member_id,
        client_id=joining.client_id,
        client_host=joining.client_host,
        session_timeout_ms=joining.session_timeout_ms,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        protocols=joining.protocols,
        instance_id=joining.instance_id,
        is_new=True,
        is_joining=True,
    )
