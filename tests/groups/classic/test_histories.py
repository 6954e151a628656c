"""Any history of joins, syncs, commits, silences and crashes leaves a group that makes sense and a log that says so."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moldau.coordinator.journal import StoredRecord
from moldau.core.errors import ErrorCode
from moldau.groups.classic.group import State
from moldau.groups.classic.membership import Leaving
from moldau.groups.limits import GroupLimits
from moldau.groups.offsets.classic import CommittedPartition, Committing
from moldau.groups.shard import GroupShard
from tests.groups.worlds import GROUP, RANGE, STICKY, World

LIMITS = GroupLimits(members_max=4, initial_rebalance_delay_ms=500)
PROTOCOLS = st.sampled_from([(RANGE,), (STICKY,), (RANGE, STICKY), (STICKY, RANGE)])
INSTANCES = st.sampled_from([None, None, "i", "j"])


class Histories(RuleBasedStateMachine):
    """Clients that follow the protocol or break it, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(LIMITS)
        self.instances: dict[str, str | None] = {}
        self.committed: dict[int, int] = {}
        self.acknowledged: list[tuple[bytes, bytes | None]] = []
        self.generation = 0

    def someone(self, data: Any) -> str:
        return str(data.draw(st.sampled_from(sorted(self.instances))))

    @rule(protocols=PROTOCOLS, instance=INSTANCES, must_know_id=st.booleans())
    def a_client_comes(self, protocols: Any, instance: str | None, must_know_id: bool) -> None:
        new_id = f"m{len(self.instances)}"
        self.world.join(new_id=new_id, protocols=protocols, instance_id=instance, must_know_id=must_know_id)
        self.instances[new_id] = instance

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), protocols=PROTOCOLS)
    def a_client_joins_again(self, data: Any, protocols: Any) -> None:
        member = self.someone(data)
        self.world.join(member, protocols=protocols, instance_id=self.instances[member])

    @precondition(lambda self: self.instances and GROUP in self.world.shard.groups)
    @rule(data=st.data())
    def a_client_syncs(self, data: Any) -> None:
        member = self.someone(data)
        everybody = {each: f"{self.world.group.generation}:{each}".encode() for each in self.world.group.members}
        reply = self.world.sync(member, everybody, instance_id=self.instances[member])
        if getattr(reply, "error_code", None) == ErrorCode.NONE:
            # A static member that comes back gets the assignment that its instance had under the id before.
            instance = self.instances[member]
            ids = {member} | {each for each, other in self.instances.items() if instance and other == instance}
            assert reply.assignment in {b"", *(f"{self.world.group.generation}:{each}".encode() for each in ids)}

    @precondition(lambda self: self.instances and GROUP in self.world.shard.groups)
    @rule(data=st.data())
    def a_client_shows_that_it_lives(self, data: Any) -> None:
        member = self.someone(data)
        self.world.heartbeat(member, instance_id=self.instances[member])

    @precondition(lambda self: self.instances)
    @rule(data=st.data())
    def a_client_leaves(self, data: Any) -> None:
        member = self.someone(data)
        self.world.leave(Leaving(member, self.instances[member]))

    @precondition(lambda self: self.instances and GROUP in self.world.shard.groups)
    @rule(data=st.data(), partition=st.integers(0, 2), offset=st.integers(0, 100))
    def a_client_commits(self, data: Any, partition: int, offset: int) -> None:
        request = Committing(
            group_id=GROUP,
            member_id=self.someone(data),
            generation=self.world.group.generation,
            partitions=[CommittedPartition("orders", partition, offset)],
        )
        (error,) = self.world.do(lambda shard, now_ms: shard.decide_commit(request, now_ms))
        if error is ErrorCode.NONE:
            self.committed[partition] = offset

    @rule(ms=st.sampled_from([100, 600, 5_000, 11_000, 70_000]))
    def time_passes(self, ms: int) -> None:
        self.world.pass_time(ms)

    @rule()
    def the_broker_dies(self) -> None:
        """Another shard reads the log: those who waited are gone, members and offsets are not."""
        old, self.world = self.world, World(LIMITS)
        self.world.now_ms = old.now_ms
        self.world.logged = old.logged
        self.world.shard = recovered(old.logged)
        self.world.do(lambda shard, now_ms: shard.decide_started(now_ms))

    @invariant()
    def the_group_makes_sense(self) -> None:
        group = self.world.shard.groups.get(GROUP)
        if group is None:
            return
        members = group.members
        assert (group.state is State.EMPTY) <= (not members)
        assert not members or group.leader in members
        assert group.unsynced <= set(members)
        assert not any(member_id in members for member_id in group.pending)
        instances = [member.instance_id for member in members.values() if member.is_static]
        assert len(instances) == len(set(instances)), "one place has two owners"
        if group.state in (State.COMPLETING, State.STABLE):
            assert len(members) <= LIMITS.members_max
            protocol = group.protocol_name or ""
            assert all(protocol in [each.name for each in member.protocols] for member in members.values())

    @invariant()
    def whoever_is_said_to_wait_does(self) -> None:
        group = self.world.shard.groups.get(GROUP)
        if group is None:
            assert not self.world.parked
            return
        joining = {("join", GROUP, each.member_id) for each in group.members.values() if each.is_joining}
        syncing = {("sync", GROUP, each.member_id) for each in group.members.values() if each.is_syncing}
        assert self.world.parked == joining | syncing

    @invariant()
    def nothing_waits_for_ever(self) -> None:
        group = self.world.shard.groups.get(GROUP)
        if group is None:
            return
        keys = set(self.world.timers)
        assert group.state is not State.PREPARING or ("join", GROUP, "") in keys
        assert not group.unsynced or ("sync", GROUP, "") in keys
        for member in group.members.values():
            assert member.is_waiting or ("session", GROUP, member.member_id) in keys
        assert all(("session", GROUP, member_id) in keys for member_id in group.pending)

    @invariant()
    def no_committed_offset_is_lost(self) -> None:
        kept = self.world.shard.offsets_of(GROUP).get("orders", {})
        assert {partition: value.offset for partition, value in kept.items()} == self.committed

    @invariant()
    def the_log_says_the_same(self) -> None:
        shard = recovered(self.world.logged)
        assert shard.offsets == self.world.shard.offsets
        group, logged = self.world.shard.groups.get(GROUP), shard.groups.get(GROUP)
        if group is not None and group.state in (State.STABLE, State.EMPTY):
            assert logged is not None
            assert logged.generation <= group.generation
            if group.state is State.STABLE:
                assert {each.member_id: each.assignment for each in logged.members.values()} == {
                    each.member_id: each.assignment for each in group.members.values()
                }


def recovered(logged: list[tuple[bytes, bytes | None]]) -> GroupShard:
    shard = GroupShard(LIMITS)
    for key, value in logged:
        fact = shard.decode(StoredRecord(memoryview(key), None if value is None else memoryview(value)))
        assert fact is not None
        shard.apply(fact)
    return shard


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
