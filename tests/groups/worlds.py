"""A shard without runtime or log: decisions are applied at once, and what they ask for is remembered for the test."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from moldau.core.decision import Decision, Delayed
from moldau.core.errors import ErrorCode
from moldau.groups.classic.group import Group, State
from moldau.groups.classic.members import Joining, Protocol
from moldau.groups.classic.membership import Leaving, Syncing
from moldau.groups.limits import GroupLimits
from moldau.groups.shard import GroupShard
from moldau.wire.messages.join_group import JoinGroupResponse
from moldau.wire.messages.sync_group import SyncGroupResponse

GROUP = "readers"
LIMITS = GroupLimits(initial_rebalance_delay_ms=3_000)
SESSION_MS = 10_000
REBALANCE_MS = 60_000


def subscription(*topics: str) -> bytes:
    named = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\x00\x01" + len(topics).to_bytes(4, "big") + named + b"\xff\xff\xff\xff"


RANGE = Protocol("range", subscription("orders"))
STICKY = Protocol("sticky", subscription("orders"))


def joining(member_id: str = "", *, new_id: str = "", **other: Any) -> Joining:
    values: dict[str, Any] = {
        "group_id": GROUP,
        "member_id": member_id,
        "new_member_id": new_id,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
        "protocols": (RANGE,),
    }
    return Joining(**{**values, **other})


class World:
    """One shard, its clock and whoever waits."""

    def __init__(self, limits: GroupLimits = LIMITS) -> None:
        self.shard = GroupShard(limits)
        self.now_ms = 0
        self.timers: dict[Hashable, int] = {}
        self.parked: set[Hashable] = set()
        self.released: dict[Hashable, Any] = {}
        self.logged: list[tuple[bytes, bytes | None]] = []

    @property
    def group(self) -> Group:
        return self.shard.groups[GROUP]

    def do(self, decide: Callable[[GroupShard, int], Decision[Any]]) -> Any:
        """Decide and apply; gives the reply."""
        before = dict(self.shard.groups)
        decision = decide(self.shard, self.now_ms)
        assert self.shard.groups == before, "a decision changes nothing"
        for fact in decision.records:
            entry = self.shard.encode(fact)
            if entry is not None:
                self.logged.append(entry)
            self.shard.apply(fact)
        for timer in decision.timers:
            self.timers.pop(timer.key, None)
            if timer.at_ms is not None:
                self.timers[timer.key] = timer.at_ms
        if isinstance(decision.reply, Delayed):
            self.parked.add(decision.reply.key)
        for released in decision.released:
            if released.key in self.parked:
                self.parked.remove(released.key)
                self.released[released.key] = released.reply
        if decision.then is not None:
            then = decision.then
            return self.do(lambda _, now_ms: then(now_ms))
        return decision.reply

    def pass_time(self, ms: int) -> None:
        """Fire the timers of that time in their order."""
        end_ms = self.now_ms + ms
        while due := [(at_ms, repr(key), key) for key, at_ms in self.timers.items() if at_ms <= end_ms]:
            self.now_ms, _, key = min(due)
            del self.timers[key]
            self.do(lambda shard, now_ms, key=key: shard.decide_timer(key, now_ms))  # type: ignore[misc]
        self.now_ms = end_ms

    def join(self, member_id: str = "", *, new_id: str = "", **other: Any) -> Any:
        return self.do(lambda shard, now_ms: shard.decide_join(joining(member_id, new_id=new_id, **other), now_ms))

    def enter(self, member_id: str, **other: Any) -> None:
        """Both steps of a new client's way in."""
        required = self.join(new_id=member_id, **other)
        assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED
        self.join(member_id, **other)

    def sync(self, member_id: str, assignments: dict[str, bytes] | None = None, **other: Any) -> Any:
        values = {"generation": self.group.generation, **other}
        request = Syncing(group_id=GROUP, member_id=member_id, assignments=assignments or {}, **values)
        return self.do(lambda shard, now_ms: shard.decide_sync(request, now_ms))

    def heartbeat(self, member_id: str, generation: int | None = None, *, instance_id: str | None = None) -> ErrorCode:
        wanted = self.group.generation if generation is None else generation
        error: ErrorCode = self.do(
            lambda shard, now_ms: shard.decide_heartbeat(
                GROUP, member_id, wanted, instance_id=instance_id, now_ms=now_ms
            )
        )
        return error

    def leave(self, *leaving: Leaving) -> list[ErrorCode]:
        errors: list[ErrorCode] = self.do(lambda shard, now_ms: shard.decide_leave(GROUP, leaving, now_ms))
        return errors

    def joined(self, member_id: str) -> JoinGroupResponse:
        """The answer that a waiting JoinGroup got."""
        reply = self.released.pop(("join", GROUP, member_id))
        assert isinstance(reply, JoinGroupResponse)
        return reply

    def synced(self, member_id: str) -> SyncGroupResponse:
        reply = self.released.pop(("sync", GROUP, member_id))
        assert isinstance(reply, SyncGroupResponse)
        return reply

    def waits_to_join(self, member_id: str) -> bool:
        return ("join", GROUP, member_id) in self.parked

    def waits_to_sync(self, member_id: str) -> bool:
        return ("sync", GROUP, member_id) in self.parked


def stable(*member_ids: str, limits: GroupLimits = LIMITS, **other: Any) -> World:
    """A group in its first generation, each member with its own name as assignment; the first one leads."""
    world = World(limits)
    for member_id in member_ids:
        world.enter(member_id, **other)
    world.pass_time(limits.initial_rebalance_delay_ms * 2)
    for member_id in member_ids[1:]:
        world.sync(member_id)
    world.sync(member_ids[0], {member_id: member_id.encode() for member_id in member_ids})
    assert world.group.state is State.STABLE
    world.released.clear()
    return world
