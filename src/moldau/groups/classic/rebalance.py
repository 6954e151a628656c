"""The way from one generation of a classic group to the next, as one decision in the making."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from moldau.core.decision import Decision, Delayed, Released, Timer
from moldau.core.errors import ErrorCode
from moldau.groups.classic.group import GENERATION_MAX, NEXT, Event, Group, State, Window, advance
from moldau.groups.classic.members import Member
from moldau.groups.classic.subscriptions import subscribed_topics
from moldau.groups.limits import NEW_MEMBER_TIMEOUT_MS, GroupLimits
from moldau.groups.records import GroupChanged, GroupCreated
from moldau.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from moldau.wire.messages.sync_group import SyncGroupResponse

R = TypeVar("R")

SESSION = "session"
JOIN = "join"
SYNC = "sync"


def session_key(group_id: str, member_id: str) -> Hashable:
    return (SESSION, group_id, member_id)


def join_key(group_id: str, member_id: str = "") -> Hashable:
    """With a member the place where its JoinGroup waits; without one the timer of the whole group."""
    return (JOIN, group_id, member_id)


def sync_key(group_id: str, member_id: str = "") -> Hashable:
    return (SYNC, group_id, member_id)


class Turn:
    """The group as it will be, and what else follows: timers, replies to those who wait, and whether it is logged."""

    __slots__ = ("_before", "_is_logged", "_released", "_timers", "group", "limits", "now_ms")

    def __init__(self, group: Group | None, group_id: str, *, limits: GroupLimits, now_ms: int) -> None:
        self.group = Group(group_id, state_since_ms=now_ms) if group is None else group
        self.limits = limits
        self.now_ms = now_ms
        self._before = group
        self._is_logged = False
        self._released: list[Released] = []
        self._timers: dict[Hashable, int | None] = {}

    def decide(self, reply: R) -> Decision[R]:
        records: list[Any] = []
        if self.group is not self._before:
            if self._before is None and not self._is_logged:
                records.append(GroupCreated(self.group.group_id, self.now_ms))
            records.append(GroupChanged(self.group, self._is_logged))
        timers = tuple(Timer(key, at_ms) for key, at_ms in self._timers.items())
        return Decision(tuple(records), reply, timers, tuple(self._released))

    def change(self, **values: Any) -> None:
        self.group = replace(self.group, **values)

    def log(self) -> None:
        """The group as it is at the end of this turn must survive a restart."""
        self._is_logged = True

    def set_timer(self, key: Hashable, delay_ms: int) -> None:
        self._timers[key] = self.now_ms + delay_ms

    def cancel_timer(self, key: Hashable) -> None:
        self._timers[key] = None

    def await_heartbeat(self, member: Member) -> None:
        self.set_timer(session_key(self.group.group_id, member.member_id), member.session_timeout_ms)

    def delay_join(self, member_id: str) -> Delayed:
        return Delayed(join_key(self.group.group_id, member_id))

    def release_join(self, member: Member, reply: JoinGroupResponse) -> None:
        if member.is_joining:
            self._released.append(Released(join_key(self.group.group_id, member.member_id), reply))

    def release_sync(self, member: Member, reply: SyncGroupResponse) -> None:
        if member.is_syncing:
            self._released.append(Released(sync_key(self.group.group_id, member.member_id), reply))

    def put(self, member: Member) -> None:
        self.change(members={**self.group.members, member.member_id: member})

    def add(self, member: Member, protocol_type: str) -> None:
        group = self.group
        window = group.window
        self.change(
            members={**group.members, member.member_id: member},
            pending=group.pending.without((member.member_id,)),
            protocol_type=group.protocol_type if group.members else protocol_type,
            leader=group.leader or member.member_id,
            window=None if window is None else window._replace(has_grown=True),
        )
        self.set_timer(session_key(group.group_id, member.member_id), NEW_MEMBER_TIMEOUT_MS)

    def remove(self, member_ids: Iterable[str], error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """Members, or ids that nobody used yet, go; if they wait for something they hear why."""
        group = self.group
        gone = frozenset(member_ids)
        if not gone:
            return
        for member_id in sorted(gone):  # so that those who wait hear it in the same order on every run
            self.cancel_timer(session_key(group.group_id, member_id))
            member = group.members.get(member_id)
            if member is not None:
                self.release_join(member, JoinGroupResponse(error_code=error, protocol_name=None))
                self.release_sync(member, SyncGroupResponse(error_code=error))
        left = {member_id: member for member_id, member in group.members.items() if member_id not in gone}
        self.change(
            members=left,
            leader=next(iter(left), None) if group.leader in gone else group.leader,
            pending=group.pending.without(gone),
            unsynced=group.unsynced - gone,
        )

    def rebalance(self) -> None:
        """Begin a rebalance, or get on with the one that is under way."""
        if (self.group.state, Event.REBALANCE) in NEXT:
            self.prepare()
        else:
            self.complete_if_joined()

    def prepare(self) -> None:
        if self.group.state is State.COMPLETING:
            self._interrupt_sync()
        group = self.group
        self.cancel_timer(sync_key(group.group_id))
        window = None
        if group.is_empty:
            delay_ms = self.limits.initial_rebalance_delay_ms
            window = Window(delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
            self.set_timer(join_key(group.group_id), delay_ms)
        self.change(
            state=advance(group.state, Event.REBALANCE), state_since_ms=self.now_ms, unsynced=frozenset(), window=window
        )
        if window is None:
            self._complete_or_wait()

    def complete_if_joined(self) -> None:
        """A new group's window is not cut short because all who came so far are there."""
        group = self.group
        if group.state is State.PREPARING and group.window is None and group.all_joined:
            self.complete_join()

    def _complete_or_wait(self) -> None:
        if self.group.all_joined:
            self.complete_join()
        else:
            self.set_timer(join_key(self.group.group_id), self.group.rebalance_timeout_ms)

    def complete_join(self) -> None:
        """Whoever has joined makes the next generation; static members keep their place also when they are late."""
        group = self.group
        self.cancel_timer(join_key(group.group_id))
        self.remove(
            member_id for member_id, member in group.members.items() if not member.is_joining and not member.is_static
        )
        if self.group.members and not self._elect_leader():
            self.set_timer(join_key(group.group_id), self.group.rebalance_timeout_ms)
            return
        self.change(
            generation=group.generation + 1 if group.generation < GENERATION_MAX else 1,
            state_since_ms=self.now_ms,
            window=None,
        )
        if self.group.members:
            self._begin_generation()
        else:
            self._begin_emptiness()

    def _elect_leader(self) -> bool:
        """The leader stays if it joined again; False if nobody did."""
        members = self.group.members
        leader = members.get(self.group.leader or "")
        if leader is not None and leader.is_joining:
            return True
        joined = next((member_id for member_id, member in members.items() if member.is_joining), None)
        if joined is not None:
            self.change(leader=joined)
        return joined is not None

    def _begin_emptiness(self) -> None:
        self.change(state=advance(self.group.state, Event.NOBODY_LEFT), protocol_name=None, unsynced=frozenset())
        self.change(subscribed_topics=subscribed_topics(self.group))
        self.log()

    def _begin_generation(self) -> None:
        self.change(
            state=advance(self.group.state, Event.ALL_JOINED),
            protocol_name=self.group.select_protocol(),
            unsynced=frozenset(self.group.members),
        )
        self.change(subscribed_topics=subscribed_topics(self.group))
        for member in self.group.members.values():
            self.release_join(member, self.joined(member.member_id))
            self.await_heartbeat(member)
        self.change(
            members={
                member_id: replace(member, is_joining=False, is_new=False)
                for member_id, member in self.group.members.items()
            }
        )
        self.set_timer(sync_key(self.group.group_id), self.group.rebalance_timeout_ms)

    def _interrupt_sync(self) -> None:
        """Members that wait for an assignment must join again instead."""
        group = self.group
        for member in group.members.values():
            if member.is_syncing:
                self.release_sync(member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
                self.await_heartbeat(member)
        self.change(
            members={
                member_id: replace(member, is_syncing=False, assignment=b"")
                for member_id, member in group.members.items()
            }
        )

    def joined(self, member_id: str, *, leader: str | None = None, skip_assignment: bool = False) -> JoinGroupResponse:
        """The answer to a member of this generation; the leader also gets the list of all members."""
        group = self.group
        protocol = group.protocol_name or ""
        members = []
        if member_id == group.leader and leader is None:
            members = [
                JoinGroupResponseMember(
                    member_id=each.member_id, group_instance_id=each.instance_id, metadata=each.metadata(protocol)
                )
                for each in group.members.values()
            ]
        return JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=protocol,
            leader=leader or group.leader or "",
            skip_assignment=skip_assignment,
            member_id=member_id,
            members=members,
        )
