"""Groups change their protocol with the first and the last member of another one, if they may and can."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moldau.coordinator.journal import StoredRecord
from moldau.core.decision import Delayed
from moldau.core.errors import ErrorCode
from moldau.groups.classic.group import State
from moldau.groups.classic.members import Protocol
from moldau.groups.limits import GroupLimits
from moldau.groups.schemas import version_of
from moldau.groups.shard import GroupShard
from tests.groups.consumer.worlds import CONFIG, GROUP, ConsumerWorld, beat, topic_id
from tests.groups.migration.worlds import SESSION_MS, MixedWorld, assignment, partitions_of, subscription

GROUP_METADATA, EPOCH, MEMBER, TARGET_EPOCH, TARGET, CURRENT = 2, 3, 5, 6, 7, 8


def mixed_with(policy: str = "bidirectional", **config: Any) -> MixedWorld:
    return MixedWorld(ConsumerWorld(config=replace(CONFIG, migration_policy=policy, **config)))


def upgraded() -> MixedWorld:
    """Two classic members with two partitions each, and a third of the new protocol that waits for its part."""
    mixed = MixedWorld()
    mixed.stand(a=assignment(0, 1), b=assignment(2, 3))
    mixed.world.join("c")
    return mixed


def kinds(logged: list[tuple[bytes, bytes | None]]) -> list[tuple[int, bool]]:
    """What each record is about, and whether it removes it."""
    return [(version_of(memoryview(key)), value is None) for key, value in logged]


def test_the_members_of_a_classic_group_keep_what_they_have() -> None:
    mixed = MixedWorld()
    mixed.stand(a=assignment(0, 1), b=assignment(2, 3))
    generation = mixed.classic.generation
    reply = mixed.world.join("c")
    group = mixed.world.group
    assert (reply.error_code, reply.member_epoch) == (ErrorCode.NONE, generation + 1)
    assert GROUP not in mixed.world.shard.groups
    assert (group.epoch, group.target_epoch) == (generation + 1, generation + 1)
    assert {name: mixed.world.assigned(name) for name in "abc"} == {"a": {0, 1}, "b": {2, 3}, "c": set()}
    assert [group.members[name].epoch for name in "abc"] == [generation, generation, generation + 1]
    assert [group.members[name].is_classic for name in "abc"] == [True, True, False]


def test_the_log_tells_the_end_of_one_group_and_then_the_other() -> None:
    mixed = MixedWorld()
    mixed.stand(a=assignment(0, 1, 2, 3))
    mixed.world.logged.clear()
    mixed.world.join("c")
    conversion = kinds(mixed.world.logged)[:6]
    assert conversion[0] == (GROUP_METADATA, True)
    assert conversion[1:] == [(kind, False) for kind in (MEMBER, EPOCH, TARGET, TARGET_EPOCH, CURRENT)]


@pytest.mark.parametrize("and_back", [False, True])
def test_a_restart_finds_the_same_group(and_back: bool) -> None:
    mixed = upgraded()
    if and_back:
        mixed.leave("c")
    again = mixed.world.new_shard()
    for key, value in mixed.world.logged:
        fact = again.decode(StoredRecord(memoryview(key), None if value is None else memoryview(value)))
        assert fact is not None
        again.apply(fact)
    shard = mixed.world.shard
    assert (set(again.groups), set(again.consumer_groups)) == (set(shard.groups), set(shard.consumer_groups))
    if and_back:
        members = again.groups[GROUP].members
        assert {name: partitions_of(member.assignment) for name, member in members.items()} == held(shard)
        assert again.groups[GROUP].generation == shard.groups[GROUP].generation + 1, "all must join again"
    else:
        assert again.consumer_groups[GROUP].members == shard.consumer_groups[GROUP].members


def held(shard: GroupShard) -> dict[str, set[int]]:
    return {name: partitions_of(member.assignment) for name, member in shard.groups[GROUP].members.items()}


def test_members_that_wait_must_join_again() -> None:
    mixed = MixedWorld()
    mixed.stand(a=assignment(0, 1, 2, 3), b=assignment())
    assert isinstance(mixed.join("a", protocols=(Protocol("range", subscription(0)),)), Delayed)
    mixed.world.join("c")
    assert mixed.released("join", "a").error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert mixed.join("a").error_code == ErrorCode.NONE


def test_members_that_wait_for_the_leader_must_join_again() -> None:
    mixed = MixedWorld()
    for member_id in "ab":
        mixed.join("", new_member_id=member_id)
    mixed.world.pass_time(6_000)
    assert isinstance(mixed.sync("b", 1), Delayed)
    mixed.world.join("c")
    assert mixed.released("sync", "b").error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_classic_member_is_silent_as_long_as_it_said() -> None:
    mixed = upgraded()
    mixed.world.pass_time(SESSION_MS - 1)
    assert set(mixed.world.group.members) == {"a", "b", "c"}
    mixed.world.pass_time(1)
    assert set(mixed.world.group.members) == {"c"}


@pytest.mark.parametrize("policy", ["downgrade", "disabled"])
def test_a_policy_without_upgrades(policy: str) -> None:
    mixed = mixed_with(policy)
    mixed.stand(a=assignment(0))
    before = mixed.classic
    reply = mixed.world.join("c")
    reason = f"Cannot upgrade classic group {GROUP} to consumer group because online upgrade is disabled."
    assert (reply.error_code, reply.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, reason)
    assert mixed.classic == before


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"protocol_type": "connect"}, "the group does not use the consumer embedded protocol"),
        ({"protocols": (Protocol("range", b"\0"),)}, "the embedded consumer protocol is malformed"),
    ],
)
def test_groups_that_can_not_be_upgraded(case: dict[str, Any], reason: str) -> None:
    mixed = MixedWorld()
    mixed.join("", new_member_id="a", **case)
    mixed.world.pass_time(6_000)
    reply = mixed.world.join("c")
    assert reply.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert reason in str(reply.error_message)
    assert set(mixed.classic.members) == {"a"}


def test_what_a_custom_assignor_tells_members_would_be_lost() -> None:
    mixed = MixedWorld()
    mixed.stand(a=assignment(0, user_data=b"mine"))
    assert "an unsupported custom assignor is in use" in str(mixed.world.join("c").error_message)


def test_a_group_that_is_too_large() -> None:
    mixed = mixed_with(max_size=1)
    mixed.stand(a=assignment(0), b=assignment(1))
    assert "the group size exceeds" in str(mixed.world.join("c").error_message)


def test_the_last_of_the_new_protocol_leaves_a_classic_group_behind() -> None:
    mixed = upgraded()
    epoch = mixed.world.group.epoch
    mixed.leave("c")
    group = mixed.classic
    assert GROUP not in mixed.world.shard.consumer_groups
    assert (group.state, group.generation, group.protocol_name) == (State.PREPARING, epoch, "range")
    assert set(group.members) == {"a", "b"}
    assert group.subscribed_topics == frozenset({"orders"})
    for member_id in "ab":
        assert isinstance(mixed.join(member_id), Delayed) or member_id == "b"
    assert mixed.classic.state is State.COMPLETING
    assert mixed.classic.generation == epoch + 1


def test_what_a_member_has_not_given_up_is_known_there_and_back_and_there_again() -> None:
    mixed = upgraded()
    assert any(
        mixed.world.group.target[name] != {topic_id("orders"): held} for name, held in (("a", {0, 1}), ("b", {2, 3}))
    )
    mixed.leave("c")
    mixed.world.join("d")
    assert {name: mixed.world.assigned(name) for name in "abd"} == {"a": {0, 1}, "b": {2, 3}, "d": set()}


def test_a_downgrade_forgets_the_timers_of_the_consumer_group() -> None:
    mixed = upgraded()
    mixed.heartbeat("a", mixed.world.group.members["a"].epoch)
    mixed.leave("c")
    assert {str(key).split("'")[1] for key in mixed.world.timers} == {"session", "join"}


def test_a_policy_without_downgrades_leaves_classic_members_with_everything() -> None:
    mixed = mixed_with("upgrade")
    mixed.stand(a=assignment(0, 1, 2, 3))
    mixed.world.join("c")
    generation, partitions = mixed.rejoin("a")
    assert len(partitions) == 2
    mixed.leave("c")
    assert set(mixed.world.group.members) == {"a"}
    assert mixed.heartbeat("a", generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert mixed.rejoin("a")[1] == {0, 1, 2, 3}


def test_what_a_member_left_is_shared_also_if_only_an_absent_static_one_keeps_the_protocol() -> None:
    mixed = mixed_with()
    mixed.stand(a=assignment(0, 1, 2, 3))
    mixed.world.join("c", instance_id="i")
    mixed.world.join("d")
    generation, _ = mixed.rejoin("a")
    mixed.leave("d")
    mixed.world.send(beat("c", -2, instance_id="i"))
    assert mixed.heartbeat("a", generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(mixed.rejoin("a")[1]) == 2, "the other half is kept for the one that may come back"


def test_more_members_than_a_classic_group_may_have_stay() -> None:
    mixed = upgraded()
    mixed.world.shard.limits = GroupLimits(members_max=1)
    mixed.leave("c")
    assert set(mixed.world.group.members) == {"a", "b"}


def test_a_silent_last_member_does_it_too() -> None:
    mixed = MixedWorld(ConsumerWorld(config=replace(CONFIG, session_timeout_ms=SESSION_MS - 1)))
    mixed.stand(a=assignment(0, 1, 2, 3))
    mixed.world.join("c")
    mixed.world.pass_time(SESSION_MS - 1)
    assert set(mixed.classic.members) == {"a"}


def test_a_static_member_goes_back_without_a_rebalance() -> None:
    mixed = MixedWorld()
    mixed.world.join("c", instance_id="i")
    epoch = mixed.world.group.epoch
    joined = mixed.join("", new_member_id="d", instance_id="i")
    group = mixed.classic
    assert (joined.error_code, joined.generation_id, joined.member_id) == (ErrorCode.NONE, epoch, "d")
    assert (group.state, group.generation, group.leader) == (State.STABLE, epoch, "d")
    synced = mixed.sync("d", epoch, instance_id="i")
    assert partitions_of(synced.assignment) == {0, 1, 2, 3}


def test_committed_offsets_stay_whatever_the_group_is() -> None:
    mixed = MixedWorld()
    mixed.stand(a=assignment(0, 1, 2, 3))
    world = mixed.world
    assert world.commit("a", mixed.classic.generation, 0, 7) is ErrorCode.NONE
    world.join("c")
    assert world.commit("a", world.group.members["a"].epoch, 1, 8) is ErrorCode.NONE
    mixed.leave("c")
    offsets = world.shard.offsets_of(GROUP)["orders"]
    assert {partition: each.offset for partition, each in offsets.items()} == {0: 7, 1: 8}
    assert topic_id("orders") == offsets[1].topic_id
