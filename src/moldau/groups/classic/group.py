"""A classic group as an immutable value: its state, its members and the questions that decisions ask about them.

    Empty --REBALANCE--> PreparingRebalance --ALL_JOINED--> CompletingRebalance --ASSIGNED--> Stable
      ^                    |          ^                             |                           |
      +---NOBODY_LEFT------+          +----------REBALANCE----------+---------REBALANCE---------+

A group that is dead is no more; there is no state for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from moldau.core.errors import ErrorCode
from moldau.groups.classic.id_set import IdSet
from moldau.groups.classic.members import Member, Protocol

CONSUMER_PROTOCOL_TYPE = "consumer"
GENERATION_MAX = 0x7FFFFFFF


class State(Enum):
    """Named as DescribeGroups names them."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class Event(Enum):
    REBALANCE = "members must join again"
    ALL_JOINED = "the next generation has its members"
    NOBODY_LEFT = "the next generation has no member"
    ASSIGNED = "the leader handed in the assignment"


NEXT: Mapping[tuple[State, Event], State] = MappingProxyType(
    {
        (State.EMPTY, Event.REBALANCE): State.PREPARING,
        (State.STABLE, Event.REBALANCE): State.PREPARING,
        (State.COMPLETING, Event.REBALANCE): State.PREPARING,
        (State.PREPARING, Event.ALL_JOINED): State.COMPLETING,
        (State.PREPARING, Event.NOBODY_LEFT): State.EMPTY,
        (State.COMPLETING, Event.ASSIGNED): State.STABLE,
    }
)


class IllegalGroupTransition(Exception):
    """A mistake of ours: no request can ask for it."""


def advance(state: State, event: Event) -> State:
    try:
        return NEXT[state, event]
    except KeyError:
        raise IllegalGroupTransition(f"{event.name} in {state.value}") from None


class Window(NamedTuple):
    """The time that a new group waits for more members before its first assignment."""

    delay_ms: int
    remaining_ms: int
    has_grown: bool = False
    """Somebody joined since the delay began, so there may be more to come."""


class Group(msgspec.Struct, frozen=True):
    """The mappings are plain dicts that nobody changes: a group that changed is another value."""

    group_id: str
    state: State = State.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    """None for a simple group: one that only commits offsets and never had members."""
    protocol_name: str | None = None
    leader: str | None = None
    state_since_ms: int = -1
    members: Mapping[str, Member] = msgspec.field(default_factory=dict)
    pending: IdSet = IdSet()
    """Ids that were handed out and not used yet: a rebalance waits for them too."""
    unsynced: frozenset[str] = frozenset()
    """Members that have not fetched their assignment of this generation."""
    window: Window | None = None
    """Only while a group that was empty prepares its first generation."""
    subscribed_topics: frozenset[str] | None = None
    """What the members consume, if their metadata could be read."""

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def is_consumer(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def all_joined(self) -> bool:
        return not self.pending and all(member.is_joining for member in self.members.values())

    @property
    def joining_count(self) -> int:
        return sum(member.is_joining for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The slowest member's."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def static_member_id(self, instance_id: str) -> str | None:
        for member in self.members.values():
            if member.instance_id == instance_id:
                return member.member_id
        return None

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether the client may speak as that member; one that was replaced under its instance id may not."""
        if instance_id is not None:
            known = self.static_member_id(instance_id)
            if known is not None and known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            return ErrorCode.UNKNOWN_MEMBER_ID if known is None else ErrorCode.NONE
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Whether a client with these protocols can be a member beside those that are."""
        if self.is_empty:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type:
            return False
        if not self.members:
            return bool(protocols)
        shared = self._shared_protocols()
        return any(each.name in shared for each in protocols)

    def select_protocol(self) -> str:
        """The one with most votes among those that everybody knows; a tie goes to the earliest vote."""
        shared = self._shared_protocols()
        votes = Counter(member.vote(shared) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def _shared_protocols(self) -> set[str]:
        counts = Counter(name for member in self.members.values() for name in {each.name for each in member.protocols})
        return {name for name, count in counts.items() if count == len(self.members)}

    def is_subscribed_to(self, topic: str) -> bool:
        """A consumer group whose subscription can't be read may be subscribed to anything."""
        if self.subscribed_topics is None:
            return self.is_consumer
        return topic in self.subscribed_topics
