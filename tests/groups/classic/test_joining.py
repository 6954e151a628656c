from __future__ import annotations

from typing import Any

import pytest

from moldau.core.decision import Decision, Delayed, Timer
from moldau.core.errors import ErrorCode
from moldau.groups.classic.group import Group, State
from moldau.groups.classic.id_set import IdSet
from moldau.groups.classic.joining import decide_join
from moldau.groups.classic.members import Joining, Protocol
from moldau.groups.classic.membership import Leaving
from moldau.groups.limits import GroupLimits
from moldau.groups.records import GroupChanged, GroupCreated
from moldau.wire.messages.join_group import JoinGroupResponse
from tests.groups.worlds import GROUP, LIMITS, RANGE, REBALANCE_MS, SESSION_MS, STICKY, World, joining, stable


def refused(error: ErrorCode, member_id: str = "") -> Decision[JoinGroupResponse]:
    return Decision.reply_only(JoinGroupResponse(error_code=error, protocol_name=None, member_id=member_id))


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (joining(group_id=""), ErrorCode.INVALID_GROUP_ID),
        (joining(session_timeout_ms=5_999), ErrorCode.INVALID_SESSION_TIMEOUT),
        (joining(session_timeout_ms=1_800_001), ErrorCode.INVALID_SESSION_TIMEOUT),
        (joining("nobody"), ErrorCode.UNKNOWN_MEMBER_ID),
        (joining(protocol_type=""), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (joining(protocols=()), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_what_a_group_that_is_not_there_refuses(request_: Joining, error: ErrorCode) -> None:
    assert decide_join(None, request_, limits=LIMITS, now_ms=0) == refused(error, request_.member_id)


def test_a_new_client_is_told_its_id_first() -> None:
    decision = decide_join(None, joining(new_id="a"), limits=LIMITS, now_ms=7)
    group = Group(GROUP, state_since_ms=7, pending=IdSet.of("a"))
    assert decision == Decision(
        records=(GroupCreated(GROUP, 7), GroupChanged(group, False)),
        reply=JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, protocol_name=None, member_id="a"),
        timers=(Timer(("session", GROUP, "a"), 7 + SESSION_MS),),
    )


def test_an_old_client_joins_at_once() -> None:
    decision = decide_join(None, joining(new_id="a", must_know_id=False), limits=LIMITS, now_ms=0)
    assert decision.reply == Delayed(("join", GROUP, "a"))
    (_, changed) = decision.records
    assert (changed.group.state, list(changed.group.members)) == (State.PREPARING, ["a"])


def test_an_id_that_was_given_and_not_used_in_time_is_worth_nothing() -> None:
    world = World()
    world.join(new_id="a")
    world.pass_time(SESSION_MS)
    assert world.join("a") == JoinGroupResponse(
        error_code=ErrorCode.UNKNOWN_MEMBER_ID, protocol_name=None, member_id="a"
    )


def test_the_first_member_leads_and_hears_of_everybody() -> None:
    world = World()
    world.enter("a")
    world.enter("b", protocols=(STICKY, RANGE))
    world.pass_time(6_000)
    leader, other = world.joined("a"), world.joined("b")
    assert [(each.member_id, each.metadata) for each in leader.members] == [
        ("a", RANGE.metadata),
        ("b", RANGE.metadata),
    ]
    assert (leader.generation_id, leader.protocol_name, leader.leader) == (1, "range", "a")
    assert (other.generation_id, other.protocol_type, other.leader, other.members) == (1, "consumer", "a", [])
    assert world.group.state is State.COMPLETING


def test_a_new_group_waits_as_long_as_members_keep_coming() -> None:
    world = World()
    world.enter("a")
    world.pass_time(2_999)
    assert world.waits_to_join("a")
    world.enter("b")
    world.pass_time(2_999)
    assert world.waits_to_join("a"), "the delay began anew when b came"
    world.pass_time(2)
    assert world.joined("a").generation_id == world.joined("b").generation_id == 1


def test_a_new_group_waits_no_longer_than_its_members_want_to() -> None:
    world = World()
    world.enter("m0", rebalance_timeout_ms=10_000)
    for second in range(1, 20):
        world.pass_time(1_000)
        if world.group.state is State.PREPARING:
            world.enter(f"m{second}", rebalance_timeout_ms=10_000)
    assert world.group.generation == 1
    assert len(world.group.members) <= 12


def test_without_a_delay_the_first_member_is_alone_in_its_generation() -> None:
    world = World(GroupLimits(initial_rebalance_delay_ms=0))
    world.enter("a")
    world.pass_time(0)
    assert world.joined("a").generation_id == 1


def test_a_newcomer_makes_everybody_join_again() -> None:
    world = stable("a", "b")
    world.enter("c")
    assert world.group.state is State.PREPARING
    assert world.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    world.join("b")
    assert world.waits_to_join("b")
    world.join("a")
    assert {world.joined(member).generation_id for member in "abc"} == {2}


def test_members_that_do_not_join_again_in_time_are_out() -> None:
    world = stable("a", "b")
    world.enter("c")
    world.join("b")
    for _ in range(REBALANCE_MS // 5_000):
        world.heartbeat("a")
        world.pass_time(5_000)
    assert world.joined("b").leader == "b", "the leader was out, so another leads"
    assert set(world.group.members) == {"b", "c"}


def test_a_rebalance_also_waits_for_ids_that_were_just_given_out() -> None:
    world = stable("a")
    world.join(new_id="b")
    world.join("a")
    assert world.waits_to_join("a")
    world.join("b")
    assert world.joined("a").generation_id == world.joined("b").generation_id == 2


def test_a_member_that_missed_the_answer_gets_it_again() -> None:
    world = World()
    world.enter("a")
    world.enter("b")
    world.pass_time(6_000)
    missed = world.joined("b")
    assert world.join("b") == missed
    assert world.join("a") == world.joined("a")


def test_a_follower_that_asks_again_in_a_stable_group_disturbs_nobody() -> None:
    world = stable("a", "b")
    reply = world.join("b")
    assert (reply.error_code, reply.generation_id, reply.leader, reply.members) == (ErrorCode.NONE, 1, "a", [])
    assert world.group.state is State.STABLE


def test_a_leader_that_asks_again_wants_a_new_assignment() -> None:
    world = stable("a", "b")
    world.join("a")
    assert world.group.state is State.PREPARING


def test_a_changed_subscription_begins_a_rebalance() -> None:
    world = stable("a", "b")
    world.join("b", protocols=(Protocol("range", b"other"),))
    assert world.group.state is State.PREPARING


def test_a_lone_leader_gets_its_next_generation_at_once() -> None:
    world = stable("a")
    world.join("a")
    assert world.joined("a").generation_id == 2


@pytest.mark.parametrize(
    "other",
    [{"protocol_type": "connect"}, {"protocols": (STICKY,)}, {"protocols": ()}],
)
def test_clients_without_a_common_protocol_stay_out(other: dict[str, Any]) -> None:
    world = stable("a", "b")
    reply = world.join(new_id="c", **other)
    assert reply.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_with_most_votes_is_taken() -> None:
    world = World()
    world.enter("a", protocols=(RANGE, STICKY))
    world.enter("b", protocols=(STICKY, RANGE))
    world.enter("c", protocols=(STICKY, RANGE, Protocol("own", b"")))
    world.pass_time(9_000)
    assert world.joined("a").protocol_name == "sticky"


def test_groups_of_other_kinds_are_groups_too() -> None:
    world = World()
    world.enter("worker", protocol_type="connect", protocols=(Protocol("sessioned", b"\x00url"),))
    world.pass_time(3_000)
    reply = world.joined("worker")
    assert (reply.protocol_type, reply.protocol_name) == ("connect", "sessioned")


def test_a_full_group_takes_nobody() -> None:
    world = stable("a", "b", limits=GroupLimits(members_max=2))
    reply = world.join(new_id="c")
    assert reply == JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED, protocol_name=None)
    assert world.group.state is State.STABLE


def test_of_those_who_enter_a_new_group_together_only_so_many_get_in() -> None:
    world = World(GroupLimits(members_max=1))
    for member in "ab":
        world.join(new_id=member)
    world.join("a")
    assert world.join("b").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    world.pass_time(3_000)
    assert world.joined("a").generation_id == 1


class TestStaticMembers:
    def enter(self, world: World, *names: str) -> None:
        for name in names:
            world.join(new_id=f"{name}-1", instance_id=name)
        world.pass_time(9_000)
        for name in names[1:]:
            world.sync(f"{name}-1", instance_id=name)
        world.sync(f"{names[0]}-1", {f"{name}-1": name.encode() for name in names}, instance_id=names[0])
        world.released.clear()

    def test_they_need_no_id_first(self) -> None:
        world = World()
        assert isinstance(world.join(new_id="x-1", instance_id="x"), Delayed)

    def test_one_that_restarts_takes_its_place_without_a_rebalance(self) -> None:
        world = World()
        self.enter(world, "x", "y")
        logged = len(world.logged)
        reply = world.join(new_id="y-2", instance_id="y")
        assert (reply.error_code, reply.generation_id, reply.leader, reply.member_id) == (0, 1, "x-1", "y-2")
        assert world.group.state is State.STABLE
        assert len(world.logged) == logged + 1, "the new id must survive a restart of ours"
        assert world.sync("y-2", instance_id="y").assignment == b"y"

    def test_a_leader_that_restarts_is_told_to_leave_the_assignment_alone(self) -> None:
        world = World()
        self.enter(world, "x", "y")
        reply = world.join(new_id="x-2", instance_id="x")
        assert (reply.leader, reply.skip_assignment) == ("x-2", True)
        assert [each.member_id for each in reply.members] == ["x-2", "y-1"]

    def test_an_old_client_that_leads_is_told_that_it_does_not(self) -> None:
        world = World()
        self.enter(world, "x", "y")
        reply = world.join(new_id="x-2", instance_id="x", may_skip_assignment=False)
        assert (reply.leader, reply.skip_assignment, reply.members) == ("x-1", False, [])

    def test_the_old_id_is_fenced_off(self) -> None:
        world = World()
        self.enter(world, "x", "y")
        world.join(new_id="y-2", instance_id="y")
        assert world.heartbeat("y-1", instance_id="y") is ErrorCode.FENCED_INSTANCE_ID
        assert world.join("y-1", instance_id="y").error_code == ErrorCode.FENCED_INSTANCE_ID
        assert world.sync("y-1", instance_id="y").error_code == ErrorCode.FENCED_INSTANCE_ID

    def test_the_old_one_stops_waiting(self) -> None:
        world = World()
        world.join(new_id="x-1", instance_id="x")
        world.join(new_id="x-2", instance_id="x")
        assert world.joined("x-1").error_code == ErrorCode.FENCED_INSTANCE_ID
        world.pass_time(9_000)
        assert world.joined("x-2").leader == "x-2"

    def test_an_instance_that_never_was_is_unknown(self) -> None:
        world = World()
        self.enter(world, "x")
        assert world.join("z-1", instance_id="z").error_code == ErrorCode.UNKNOWN_MEMBER_ID

    def test_one_that_changes_its_protocol_begins_a_rebalance(self) -> None:
        world = World()
        for name in "xy":
            world.join(new_id=f"{name}-1", instance_id=name, protocols=(RANGE, STICKY))
        world.pass_time(9_000)
        world.sync("y-1", instance_id="y")
        world.sync("x-1", {}, instance_id="x")
        assert isinstance(world.join(new_id="y-2", instance_id="y", protocols=(STICKY,)), Delayed)
        assert world.group.state is State.PREPARING

    def test_one_that_restarts_during_the_assignment_begins_it_anew(self) -> None:
        world = World()
        for name in "xy":
            world.join(new_id=f"{name}-1", instance_id=name)
        world.pass_time(9_000)
        world.sync("y-1", instance_id="y")
        world.join(new_id="y-2", instance_id="y")
        assert world.synced("y-1").error_code == ErrorCode.FENCED_INSTANCE_ID
        assert world.group.state is State.PREPARING

    def test_they_keep_their_place_when_they_are_late(self) -> None:
        world = World()
        self.enter(world, "x", "y")
        world.enter("c")
        world.join("x-1", instance_id="x")
        for _ in range(REBALANCE_MS // 5_000):
            world.heartbeat("y-1", instance_id="y")
            world.pass_time(5_000)
        assert set(world.group.members) == {"x-1", "y-1", "c"}
        assert world.joined("x-1").generation_id == 2

    def test_a_group_of_nobody_but_the_late_waits_on(self) -> None:
        world = World()
        self.enter(world, "x", "y")
        world.enter("c")
        world.leave(Leaving("c"))
        for _ in range(2 * REBALANCE_MS // 5_000):
            for name in "xy":
                assert world.heartbeat(f"{name}-1", instance_id=name) is ErrorCode.REBALANCE_IN_PROGRESS
            world.pass_time(5_000)
        for name in "yx":
            world.join(f"{name}-1", instance_id=name)
        assert world.joined("x-1").generation_id == world.joined("y-1").generation_id == 2
