from __future__ import annotations

import pytest

from moldau.core.decision import Decision, Delayed, Timer
from moldau.core.errors import ErrorCode
from moldau.groups.classic.group import NEXT, Event, IllegalGroupTransition, State, advance
from moldau.groups.classic.membership import Leaving, Syncing, decide_heartbeat, decide_leave, decide_sync
from moldau.groups.records import decode_fact
from moldau.wire.messages.sync_group import SyncGroupResponse
from tests.groups.worlds import GROUP, LIMITS, REBALANCE_MS, SESSION_MS, World, stable


def test_only_the_transitions_of_the_table_are_possible() -> None:
    for state in State:
        for event in Event:
            if (state, event) not in NEXT:
                with pytest.raises(IllegalGroupTransition):
                    advance(state, event)


def completing(*member_ids: str) -> World:
    """All have joined and nobody has synced."""
    world = World()
    for member_id in member_ids:
        world.enter(member_id)
    world.pass_time(6_000)
    assert world.group.state is State.COMPLETING
    world.released.clear()
    return world


class TestSync:
    def test_members_wait_for_the_leader(self) -> None:
        world = completing("a", "b")
        assert world.sync("b") == Delayed(("sync", GROUP, "b"))
        reply = world.sync("a", {"a": b"0", "b": b"1"})
        assert reply == SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b"0")
        assert world.synced("b").assignment == b"1"
        assert world.group.state is State.STABLE

    def test_the_assignment_is_logged_before_anybody_hears_it(self) -> None:
        world = completing("a")
        world.logged.clear()
        world.sync("a", {"a": b"0"})
        ((key, value),) = world.logged
        fact = decode_fact(memoryview(key), memoryview(value or b""))
        assert fact is not None
        assert fact.group.members["a"].assignment == b"0"  # type: ignore[union-attr]

    def test_whom_the_leader_forgot_gets_nothing(self) -> None:
        world = completing("a", "b")
        world.sync("a", {"a": b"0", "stranger": b"9"})
        assert world.sync("b").assignment == b""
        assert set(world.group.members) == {"a", "b"}

    def test_who_asks_later_gets_the_same(self) -> None:
        world = stable("a", "b")
        assert world.sync("b").assignment == b"b"

    @pytest.mark.parametrize(
        ("syncing", "error"),
        [
            (Syncing(group_id="", member_id="a", generation=1), ErrorCode.INVALID_GROUP_ID),
            (Syncing(group_id=GROUP, member_id="x", generation=1), ErrorCode.UNKNOWN_MEMBER_ID),
            (Syncing(group_id=GROUP, member_id="a", generation=0), ErrorCode.ILLEGAL_GENERATION),
            (
                Syncing(group_id=GROUP, member_id="a", generation=1, protocol_name="sticky"),
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            ),
            (
                Syncing(group_id=GROUP, member_id="a", generation=1, protocol_type="connect"),
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            ),
        ],
    )
    def test_what_is_refused(self, syncing: Syncing, error: ErrorCode) -> None:
        group = stable("a").group
        decision = decide_sync(group, syncing, limits=LIMITS, now_ms=0)
        assert decision == Decision.reply_only(SyncGroupResponse(error_code=error))

    def test_a_group_that_is_not_there_has_no_members(self) -> None:
        syncing = Syncing(group_id=GROUP, member_id="a", generation=1)
        decision = decide_sync(None, syncing, limits=LIMITS, now_ms=0)
        assert decision == Decision.reply_only(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))

    def test_a_rebalance_sends_those_who_wait_back_to_join(self) -> None:
        world = completing("a", "b")
        world.sync("b")
        world.enter("c")
        assert world.synced("b").error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert world.sync("b").error_code == ErrorCode.REBALANCE_IN_PROGRESS

    def test_members_that_never_fetch_their_assignment_are_out(self) -> None:
        world = completing("a", "b")
        world.sync("a", {"a": b"0", "b": b"1"})
        for _ in range(REBALANCE_MS // 5_000):
            world.heartbeat("a")
            if "b" in world.group.members:
                world.heartbeat("b")
            world.pass_time(5_000)
        assert world.group.state is State.PREPARING
        assert set(world.group.members) == {"a"}

    def test_without_its_leader_a_generation_does_not_come_about(self) -> None:
        world = completing("a", "b")
        world.sync("b")
        world.pass_time(SESSION_MS)
        assert world.synced("b").error_code == ErrorCode.REBALANCE_IN_PROGRESS
        world.join("b")
        assert world.joined("b").leader == "b"


class TestHeartbeat:
    def test_a_sign_of_life_moves_the_deadline_and_nothing_else(self) -> None:
        group = stable("a").group
        decision = decide_heartbeat(group, "a", 1, instance_id=None, now_ms=500)
        assert decision == Decision((), ErrorCode.NONE, (Timer(("session", GROUP, "a"), 500 + SESSION_MS),))

    @pytest.mark.parametrize(
        ("member_id", "generation", "error"),
        [
            ("x", 1, ErrorCode.UNKNOWN_MEMBER_ID),
            ("a", 0, ErrorCode.ILLEGAL_GENERATION),
            ("a", 2, ErrorCode.ILLEGAL_GENERATION),
        ],
    )
    def test_strangers_and_members_of_another_generation_are_refused(
        self, member_id: str, generation: int, error: ErrorCode
    ) -> None:
        group = stable("a").group
        decision = decide_heartbeat(group, member_id, generation, instance_id=None, now_ms=0)
        assert decision == Decision.reply_only(error)

    def test_a_group_that_is_not_there_has_no_members(self) -> None:
        decision = decide_heartbeat(None, "a", 1, instance_id=None, now_ms=0)
        assert decision == Decision.reply_only(ErrorCode.UNKNOWN_MEMBER_ID)

    def test_a_silent_member_is_out_and_the_others_rebalance(self) -> None:
        world = stable("a", "b")
        world.pass_time(SESSION_MS - 1)
        world.heartbeat("a")
        world.pass_time(1)
        assert world.group.state is State.PREPARING
        assert set(world.group.members) == {"a"}

    def test_whoever_waits_for_others_needs_no_heartbeat(self) -> None:
        world = stable("a", "b")
        world.enter("c")
        world.join("a")
        for _ in range(4):
            world.pass_time(SESSION_MS - 1)
            world.heartbeat("b")
        assert world.waits_to_join("a")
        assert "a" in world.group.members

    def test_a_newcomer_whose_connection_died_is_forgotten_in_the_end(self) -> None:
        world = stable("a")
        world.enter("b", rebalance_timeout_ms=10 * 60_000)
        for _ in range(5 * 60):
            world.heartbeat("a")
            world.pass_time(1_000)
        assert set(world.group.members) == {"a"}


class TestLeaving:
    def test_the_others_rebalance(self) -> None:
        world = stable("a", "b")
        assert world.leave(Leaving("a")) == [ErrorCode.NONE]
        assert (world.group.state, world.group.leader) == (State.PREPARING, "b")
        assert ("session", GROUP, "a") not in world.timers

    def test_a_group_that_everybody_left_is_empty_and_says_so_in_the_log(self) -> None:
        world = stable("a", "b")
        world.logged.clear()
        assert world.leave(Leaving("a"), Leaving("b")) == [ErrorCode.NONE] * 2
        assert (world.group.state, world.group.generation, world.group.leader) == (State.EMPTY, 2, None)
        assert len(world.logged) == 1
        assert world.timers == {}

    def test_each_gets_an_answer_of_its_own(self) -> None:
        world = stable("a", "b")
        answers = world.leave(Leaving("x"), Leaving("a"), Leaving("a"), Leaving("", "nobody"), Leaving(""))
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        assert answers == [unknown, ErrorCode.NONE, unknown, unknown, unknown]

    def test_strangers_disturb_nobody(self) -> None:
        group = stable("a").group
        decision = decide_leave(group, GROUP, [Leaving("x")], limits=LIMITS, now_ms=0)
        assert decision == Decision.reply_only([ErrorCode.UNKNOWN_MEMBER_ID])
        nowhere = decide_leave(None, GROUP, [Leaving("x"), Leaving("y")], limits=LIMITS, now_ms=0)
        assert nowhere == Decision.reply_only([ErrorCode.UNKNOWN_MEMBER_ID] * 2)

    def test_a_static_member_can_be_named_by_its_instance(self) -> None:
        world = World()
        world.join(new_id="x-1", instance_id="x")
        world.pass_time(3_000)
        assert world.leave(Leaving("other", "x")) == [ErrorCode.FENCED_INSTANCE_ID]
        assert world.leave(Leaving("", "x")) == [ErrorCode.NONE]
        assert world.group.state is State.EMPTY

    def test_one_who_waits_to_join_hears_that_it_is_out(self) -> None:
        world = stable("a", "b")
        world.join("a")
        world.leave(Leaving("a"))
        assert world.joined("a").error_code == ErrorCode.UNKNOWN_MEMBER_ID

    def test_the_last_whom_a_rebalance_waits_for_ends_it_by_leaving(self) -> None:
        world = stable("a", "b")
        world.join("a")
        assert world.waits_to_join("a")
        world.leave(Leaving("b"))
        assert world.joined("a").generation_id == 2

    def test_an_id_that_was_not_used_can_be_given_back(self) -> None:
        world = stable("a")
        world.join(new_id="b")
        world.join("a")
        assert world.waits_to_join("a")
        assert world.leave(Leaving("b")) == [ErrorCode.NONE]
        assert world.joined("a").generation_id == 2
