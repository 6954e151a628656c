from __future__ import annotations

from typing import Any

import pytest

from moldau.core.decision import Decision, Timer
from moldau.core.errors import ErrorCode
from moldau.core.ids import ZERO_UUID
from moldau.groups.classic.members import Protocol
from moldau.groups.classic.membership import Leaving
from moldau.groups.limits import GroupLimits
from moldau.groups.offsets.classic import CommittedPartition, Committing, decide_commit
from moldau.groups.records import CommittedOffset, GroupDeleted, OffsetCommitted, OffsetDeleted
from tests.groups.worlds import GROUP, LIMITS, SESSION_MS, World, stable, subscription

DAY_MS = 24 * 60 * 60 * 1000
ORDERS_0 = CommittedPartition("orders", 0, 41, 3, "note")


def committing(*partitions: CommittedPartition, **other: Any) -> Committing:
    return Committing(group_id=GROUP, partitions=partitions or (ORDERS_0,), **other)


def commit(world: World, *partitions: CommittedPartition, **other: Any) -> list[ErrorCode]:
    request = committing(*partitions, **other)
    errors: list[ErrorCode] = world.do(lambda shard, now_ms: shard.decide_commit(request, now_ms))
    return errors


def test_a_simple_consumer_needs_no_group() -> None:
    decision = decide_commit(None, committing(), limits=LIMITS, now_ms=9)
    committed = CommittedOffset(41, 3, "note", commit_ms=9)
    assert decision == Decision([OffsetCommitted(GROUP, "orders", 0, committed)], [ErrorCode.NONE])


def test_a_member_shows_with_a_commit_that_it_is_alive() -> None:
    group = stable("a").group
    decision = decide_commit(group, committing(member_id="a", generation=1), limits=LIMITS, now_ms=9)
    assert decision.timers == (Timer(("session", GROUP, "a"), 9 + SESSION_MS),)


@pytest.mark.parametrize(
    ("other", "error"),
    [
        ({}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "a"}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "a", "generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "x", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "a", "generation": 1, "instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_group_with_members_takes_offsets_from_its_members_only(other: dict[str, Any], error: ErrorCode) -> None:
    decision = decide_commit(stable("a").group, committing(**other), limits=LIMITS, now_ms=0)
    assert decision == Decision.reply_only([error])


def test_a_fenced_member_can_not_commit() -> None:
    world = World()
    world.join(new_id="x-1", instance_id="x")
    world.pass_time(3_000)
    world.sync("x-1", {}, instance_id="x")
    world.join(new_id="x-2", instance_id="x")
    error = commit(world, member_id="x-1", generation=1, instance_id="x")
    assert error == [ErrorCode.FENCED_INSTANCE_ID]


def test_a_member_of_a_group_that_is_gone_hears_what_its_version_expects() -> None:
    for missing in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND):
        request = committing(member_id="a", generation=1, missing_group=missing)
        assert decide_commit(None, request, limits=LIMITS, now_ms=0) == Decision.reply_only([missing])


def test_while_the_assignment_is_made_nobody_commits() -> None:
    world = World()
    world.enter("a")
    world.pass_time(3_000)
    assert commit(world, member_id="a", generation=1) == [ErrorCode.REBALANCE_IN_PROGRESS]


def test_before_a_rebalance_members_may_still_commit() -> None:
    world = stable("a", "b")
    world.enter("c")
    assert commit(world, member_id="a", generation=1) == [ErrorCode.NONE]


def test_an_administrator_may_set_the_offsets_of_an_empty_group() -> None:
    world = stable("a")
    world.leave(Leaving("a"))
    assert commit(world) == [ErrorCode.NONE]
    assert commit(world, member_id="a", generation=1) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_notes_are_kept_up_to_a_length() -> None:
    world = World(GroupLimits(offset_metadata_chars_max=3))
    errors = commit(
        world,
        CommittedPartition("orders", 0, 1, metadata="abc"),
        CommittedPartition("orders", 1, 1, metadata="abcd"),
        CommittedPartition("orders", 2, 1, metadata=None),
    )
    assert errors == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    kept = world.shard.offsets_of(GROUP)["orders"]
    assert {index: value.metadata for index, value in kept.items()} == {0: "abc", 2: ""}


class TestDeleting:
    def delete(self, world: World, *partitions: tuple[str, int]) -> Any:
        return world.do(lambda shard, _: shard.decide_delete_offsets(GROUP, partitions))

    def test_what_a_group_reads_stays(self) -> None:
        world = stable("a")
        commit(world, ORDERS_0, CommittedPartition("old", 1, 5), member_id="a", generation=1)
        errors = self.delete(world, ("orders", 0), ("old", 1), ("old", 2))
        assert errors == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE]
        assert list(world.shard.offsets_of(GROUP)) == ["orders"]

    def test_an_empty_group_reads_nothing(self) -> None:
        world = stable("a")
        commit(world, member_id="a", generation=1)
        world.leave(Leaving("a"))
        assert self.delete(world, ("orders", 0)) == [ErrorCode.NONE]
        assert world.shard.offsets == {}

    def test_nothing_of_a_group_of_another_kind_with_members(self) -> None:
        world = stable("a", protocol_type="connect")
        assert self.delete(world, ("orders", 0)) == ErrorCode.NON_EMPTY_GROUP

    def test_nothing_of_a_group_that_is_not_there(self) -> None:
        assert self.delete(World(), ("orders", 0)) == ErrorCode.GROUP_ID_NOT_FOUND

    def test_a_group_goes_with_all_it_committed(self) -> None:
        world = World()
        commit(world)
        decision = world.shard.decide_delete_group(GROUP)
        facts = [OffsetDeleted(GROUP, "orders", 0), GroupDeleted(GROUP)]
        assert decision == Decision(facts, ErrorCode.NONE, is_whole=False)
        world.do(lambda shard, _: shard.decide_delete_group(GROUP))
        assert (world.shard.groups, world.shard.offsets) == ({}, {})
        assert [value for _, value in world.logged][-2:] == [None, None]

    def test_a_group_with_members_stays(self) -> None:
        world = stable("a")
        assert world.shard.decide_delete_group(GROUP) == Decision.reply_only(ErrorCode.NON_EMPTY_GROUP)
        assert world.shard.decide_delete_group("x") == Decision.reply_only(ErrorCode.GROUP_ID_NOT_FOUND)

    def test_offsets_go_with_their_topic(self) -> None:
        world = World()
        commit(world, ORDERS_0, CommittedPartition("old", 1, 5))
        world.do(lambda shard, _: shard.decide_topics_deleted({"orders": ZERO_UUID, "other": ZERO_UUID}))
        assert list(world.shard.offsets_of(GROUP)) == ["old"]


class TestExpiry:
    def expire(self, world: World, after_ms: int) -> None:
        """Time passes with nobody there, but for the check."""
        world.timers.clear()
        world.now_ms += after_ms
        world.do(lambda shard, now_ms: shard.decide_expiry(now_ms))

    def test_a_simple_consumer_offset_expires_after_its_commit(self) -> None:
        world = World()
        commit(world)
        self.expire(world, 7 * DAY_MS - 1)
        assert GROUP in world.shard.offsets
        self.expire(world, 1)
        assert (world.shard.groups, world.shard.offsets) == ({}, {})

    @pytest.mark.parametrize("retention_ms", [2**63 - 1, -(2**63), -2])
    def test_a_retention_without_end_is_logged_as_far_as_there_is_room(self, retention_ms: int) -> None:
        world = World()
        commit(world, retention_ms=retention_ms)
        kept = world.shard.offsets_of(GROUP)["orders"][0].expire_ms
        assert kept == min(world.now_ms + retention_ms, 2**63 - 1)
        assert len(world.logged) == 1

    def test_the_time_of_a_group_runs_since_its_last_member_left(self) -> None:
        world = stable("a")
        commit(world, member_id="a", generation=1)
        self.expire(world, 30 * DAY_MS)
        assert GROUP in world.shard.offsets
        world.leave(Leaving("a"))
        self.expire(world, 7 * DAY_MS - 1)
        assert GROUP in world.shard.offsets
        self.expire(world, 1)
        assert (world.shard.groups, world.shard.offsets) == ({}, {})

    def test_topics_that_a_group_no_longer_reads_expire(self) -> None:
        world = stable("a")
        commit(world, ORDERS_0, CommittedPartition("old", 0, 1), member_id="a", generation=1)
        self.expire(world, 7 * DAY_MS)
        assert list(world.shard.offsets_of(GROUP)) == ["orders"]

    def test_who_said_for_how_long_is_taken_at_its_word(self) -> None:
        world = World()
        commit(world, retention_ms=1_000)
        self.expire(world, 999)
        assert GROUP in world.shard.offsets
        self.expire(world, 1)
        assert world.shard.offsets == {}

    def test_an_empty_group_without_offsets_goes_at_the_next_check(self) -> None:
        world = stable("a")
        world.leave(Leaving("a"))
        self.expire(world, 1)
        assert world.shard.groups == {}

    def test_the_next_check_is_always_set(self) -> None:
        decision = World().shard.decide_expiry(5)
        assert decision.timers == (Timer(("expiry", "", ""), 600_005),)


def test_a_subscription_that_can_not_be_read_may_be_to_anything() -> None:
    world = stable("a", protocols=(Protocol("range", b"\x00"),))
    assert world.group.subscribed_topics is None
    assert world.group.is_subscribed_to("anything")
    readable = stable("a", protocols=(Protocol("range", subscription("b", "c")),))
    assert readable.group.subscribed_topics == frozenset({"b", "c"})
