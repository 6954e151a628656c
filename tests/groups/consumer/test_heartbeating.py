from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moldau.core.decision import Decision, Timer
from moldau.core.errors import ApiError, ErrorCode
from moldau.groups.classic.membership import Leaving
from moldau.groups.consumer.facts import (
    GroupEpochSet,
    ProfileSet,
    ProgressSet,
    RegexSet,
    TargetEpochSet,
    TargetSet,
    TopicsChecked,
)
from moldau.groups.consumer.group import ConsumerState
from moldau.groups.consumer.heartbeating import Heartbeat, check_heartbeat
from moldau.groups.consumer.members import MemberState, Partitions, Profile, Progress
from moldau.groups.consumer.turn import consumer_session_key
from moldau.groups.limits import ConsumerGroupConfig
from moldau.groups.records import GroupDeleted
from moldau.groups.shard import EXPIRY
from moldau.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.groups.consumer.worlds import (
    CONFIG,
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    ConsumerWorld,
    beat,
    joining,
    topic_id,
)

ORDERS = topic_id("orders")


def shared(*member_ids: str, **values: Any) -> ConsumerWorld:
    """Members that have come to their assignment."""
    world = ConsumerWorld(**values)
    for member_id in member_ids:
        world.join(member_id)
    world.settle(*member_ids)
    assert world.group.state is ConsumerState.STABLE
    return world


def test_the_first_heartbeat_of_a_group() -> None:
    world = ConsumerWorld()
    profile = Profile("c", "/h", topics=frozenset({"orders"}), rebalance_timeout_ms=REBALANCE_MS)
    assert world.shard.decide_consumer_heartbeat(joining("a", "orders"), 1_000) == Decision(
        (
            ProfileSet(GROUP, "a", profile),
            GroupEpochSet(GROUP, 2, world.topics.hash_of(["orders"])),
            TopicsChecked(GROUP, world.topics.version),
            TargetSet(GROUP, "a", {ORDERS: frozenset(range(4))}),
            TargetEpochSet(GROUP, 2, 1_000),
            ProgressSet(GROUP, "a", Progress(2, 0, MemberState.STABLE, {ORDERS: dict.fromkeys(range(4), 2)})),
        ),
        ConsumerGroupHeartbeatResponse(
            member_id="a",
            member_epoch=2,
            heartbeat_interval_ms=CONFIG.heartbeat_interval_ms,
            assignment=Assignment([TopicPartitions(ORDERS, [0, 1, 2, 3])]),
        ),
        (Timer(("consumer rebalance", GROUP, "a"), None), Timer(("consumer session", GROUP, "a"), 1_000 + SESSION_MS)),
    )


def test_a_heartbeat_without_news_changes_nothing_but_the_time_that_is_left() -> None:
    world = shared("a")
    assert world.shard.decide_consumer_heartbeat(beat("a", 2), 9_000) == Decision(
        (),
        ConsumerGroupHeartbeatResponse(member_id="a", member_epoch=2, heartbeat_interval_ms=5_000),
        (Timer(consumer_session_key(GROUP, "a"), 9_000 + SESSION_MS),),
    )


def test_a_full_heartbeat_gets_a_full_answer() -> None:
    world = shared("a")
    full = beat("a", 2, rebalance_timeout_ms=REBALANCE_MS, topics=frozenset({"orders"}), owned={})
    assert world.send(full).assignment == Assignment([TopicPartitions(ORDERS, [0, 1, 2, 3])])


def test_a_client_without_an_id_is_given_one() -> None:
    world = ConsumerWorld()
    assert world.send(replace(joining("", "orders"), new_member_id="new")).member_id == "new"


def test_a_second_member_waits_until_the_first_gave_its_part_up() -> None:
    world = shared("a")
    joined = world.join("b")
    assert (joined.member_epoch, joined.assignment) == (3, Assignment([]))
    assert world.group.members["b"].progress.state is MemberState.UNRELEASED
    told = world.beat("a")
    assert (told.member_epoch, len(world.assigned("a"))) == (2, 2)
    assert world.group.members["a"].progress.state is MemberState.UNREVOKED
    assert world.beat("b").assignment is None
    assert world.beat("a").member_epoch == 3
    assert world.beat("b").assignment is not None
    assert (len(world.assigned("a")), len(world.assigned("b"))) == (2, 2)
    assert world.group.state is ConsumerState.STABLE


def test_members_that_come_within_the_interval_share_one_assignment() -> None:
    world = ConsumerWorld(config=ConsumerGroupConfig(assignment_interval_ms=1_000))
    world.join("a")
    world.join("b")
    world.join("c")
    assert (world.group.epoch, world.group.target_epoch, world.group.state) == (4, 2, ConsumerState.ASSIGNING)
    world.pass_time(1_000)
    world.settle("a", "b", "c")
    assert (world.group.target_epoch, world.group.state) == (4, ConsumerState.STABLE)


def test_the_part_of_one_that_leaves_goes_to_the_others() -> None:
    world = shared("a", "b")
    assert world.send(beat("b", -1)).member_epoch == -1
    assert world.group.epoch == 4
    world.settle("a")
    assert world.assigned("a") == {0, 1, 2, 3}


def test_the_last_one_leaves_an_empty_group() -> None:
    world = shared("a")
    world.send(beat("a", -1))
    assert (world.group.state, world.group.epoch, world.group.target_epoch) == (ConsumerState.EMPTY, 3, 2)
    assert (world.group.owners, world.group.target, world.timers) == ({}, {}, {})


def test_a_silent_member_is_fenced_when_its_session_is_over() -> None:
    world = shared("a", "b")
    world.pass_time(SESSION_MS - 1)
    world.beat("a")
    assert set(world.group.members) == {"a", "b"}
    world.pass_time(1)
    assert set(world.group.members) == {"a"}
    assert world.beat("b").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_gives_nothing_up_is_fenced_when_its_time_is_over() -> None:
    world = shared("a")
    world.join("b")
    world.beat("a")
    for _ in range(3):
        world.pass_time(REBALANCE_MS // 4)
        world.send(beat("a", 2))
        world.beat("b")
    world.pass_time(REBALANCE_MS // 4)
    assert set(world.group.members) == {"b"}
    world.settle("b")
    assert world.assigned("b") == {0, 1, 2, 3}


def test_a_member_that_gave_up_in_time_is_not_fenced() -> None:
    world = shared("a")
    world.join("b")
    world.beat("a")
    world.beat("a")
    world.pass_time(REBALANCE_MS)
    assert set(world.group.members) == {"a", "b"}


@pytest.mark.parametrize(("epoch", "words"), [(9, "greater"), (1, "smaller")])
def test_a_member_of_another_epoch_is_fenced(epoch: int, words: str) -> None:
    world = shared("a")
    refused = world.send(beat("a", epoch, owned={}))
    assert refused.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert refused.error_message is not None
    assert f"has a {words} member epoch ({epoch})" in refused.error_message


def test_one_epoch_behind_is_forgiven_to_who_has_nothing_that_it_should_not() -> None:
    world = shared("a", "b")
    behind = world.group.members["a"].progress.previous_epoch
    assert world.send(beat("a", behind, owned=world.owned["a"])).error_code == ErrorCode.NONE
    wrong: list[Partitions | None] = [None, {ORDERS: frozenset(range(4))}, {topic_id("other"): frozenset()}]
    for owned in wrong:
        assert world.send(beat("a", behind, owned=owned)).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_group_has_room_for_so_many() -> None:
    world = ConsumerWorld(config=replace(CONFIG, max_size=1))
    world.join("a")
    refused = world.join("b")
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The consumer group has reached its maximum capacity of 1 members.",
    )
    assert world.join("a").error_code == ErrorCode.NONE


def test_a_static_member_comes_back_to_its_own() -> None:
    world = shared("b")
    world.join("a", instance_id="i")
    world.settle("a", "b")
    mine, epoch = world.assigned("a"), world.group.epoch
    held = world.join("c", instance_id="i")
    assert held.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    world.send(beat("a", -2, instance_id="i"))
    assert world.group.members["a"].progress.assigned == {ORDERS: dict.fromkeys(mine, 0)}
    back = world.join("c", instance_id="i")
    assert (back.error_code, back.member_epoch) == (ErrorCode.NONE, epoch)
    assert (world.assigned("c"), world.group.epoch, set(world.group.members)) == (mine, epoch, {"b", "c"})
    fenced = world.send(beat("a", epoch, instance_id="i"))
    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_stays_away_is_fenced_in_the_end() -> None:
    world = ConsumerWorld()
    world.join("a", instance_id="i")
    world.send(beat("a", -2, instance_id="i"))
    world.pass_time(SESSION_MS)
    assert world.group.is_empty
    assert world.join("b", instance_id="i").error_code == ErrorCode.NONE


def test_administrators_remove_members() -> None:
    world = shared("a", "b")
    world.join("s", instance_id="i")
    replies = world.do(
        lambda shard, now_ms: shard.decide_leave(
            GROUP, [Leaving("a"), Leaving("x"), Leaving("", "i"), Leaving("y", "i"), Leaving("", "j")], now_ms
        )
    )
    unknown, fenced = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
    assert replies == [ErrorCode.NONE, unknown, ErrorCode.NONE, fenced, unknown]
    assert set(world.group.members) == {"b"}


def test_the_assignor_is_the_one_that_most_members_ask_for() -> None:
    world = ConsumerWorld({"orders": 4, "pairs": 4})
    for member_id in ("a", "b"):
        world.join(member_id, "orders", "pairs", assignor="range")
    world.settle("a", "b")
    assert world.assigned("a", "orders") == world.assigned("a", "pairs") == {0, 1}


def test_topics_that_come_grow_and_go_are_seen_by_the_next_heartbeat() -> None:
    world = ConsumerWorld()
    world.join("a", "orders", "later")
    world.change_topics(later=2)
    world.beat("a")
    assert (world.group.epoch, world.assigned("a", "later")) == (3, {0, 1})
    world.change_topics(other=1)
    world.beat("a")
    assert world.group.epoch == 3
    world.change_topics(later=3)
    world.beat("a")
    assert (world.group.epoch, world.assigned("a", "later")) == (4, {0, 1, 2})
    world.change_topics(later=0)
    world.settle("a")
    assert (world.group.epoch, world.assigned("a"), world.assigned("a", "later")) == (5, {0, 1, 2, 3}, set())


def test_a_regular_expression_is_resolved_soon_and_followed() -> None:
    world = ConsumerWorld({"orders-eu": 1, "other": 1})
    assert world.join("a", topics=frozenset(), regex="orders-.*").assignment == Assignment([])
    world.pass_time(0)
    world.beat("a")
    assert world.assigned("a", "orders-eu") == {0}
    world.change_topics(**{"orders-us": 2})
    world.beat("a")
    world.pass_time(10_001)
    assert world.assigned("a", "orders-us") == set()
    world.beat("a")
    world.pass_time(0)
    world.beat("a")
    assert (world.assigned("a", "orders-us"), world.group.epoch) == ({0, 1}, 3)


def test_a_regular_expression_finds_only_topics_that_its_member_may_describe() -> None:
    world = ConsumerWorld({"orders-eu": 1, "orders-secret": 1})
    world.join("a", topics=frozenset(), regex="orders-.*", may_describe=lambda topic: topic != "orders-secret")
    world.pass_time(0)
    world.beat("a")
    assert (world.assigned("a", "orders-eu"), world.assigned("a", "orders-secret")) == ({0}, set())


def test_a_regular_expression_that_nobody_has_any_more_is_forgotten() -> None:
    world = ConsumerWorld({"orders": 2})
    world.join("a", topics=frozenset(), regex="ord.*")
    world.pass_time(0)
    world.beat("a")
    decision = world.shard.decide_consumer_heartbeat(beat("a", 2, regex="", owned={}), world.now_ms)
    assert RegexSet(GROUP, "ord.*", None) in decision.records
    world.beat("a", regex="")
    world.settle("a")
    assert (world.group.regexes, world.assigned("a")) == ({}, set())


def test_a_regular_expression_that_is_none() -> None:
    refused = ConsumerWorld().join("a", topics=frozenset(), regex="(")
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        "SubscribedTopicRegex `(` is not a valid regular expression: missing closing ).",
    )


def test_a_group_that_is_not_there() -> None:
    world = ConsumerWorld()
    for epoch, message in ((3, f"Consumer group {GROUP} not found."), (-1, f"Group {GROUP} not found.")):
        refused = world.send(beat("a", epoch))
        assert (refused.error_code, refused.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, message)
    assert not world.shard.consumer_groups


def test_an_empty_classic_group_makes_room() -> None:
    world = ConsumerWorld()
    world.commit("", -1, 0, 7)
    assert GROUP in world.shard.groups
    decision = world.shard.decide_consumer_heartbeat(joining("a", "orders"), world.now_ms)
    assert decision.records[0] == GroupDeleted(GROUP)
    world.join("a")
    assert (list(world.shard.groups), world.shard.offsets_of(GROUP)["orders"][0].offset) == ([], 7)


def test_after_a_restart_every_member_has_its_full_time() -> None:
    world = shared("a")
    world.join("b")
    world.beat("a")
    decided = world.shard.decide_started(50_000).timers
    assert all(timer.is_kept for timer in decided if timer.key != EXPIRY), "a member may have been heard of since"
    timers = {timer.key: timer.at_ms for timer in decided}
    assert timers[consumer_session_key(GROUP, "a")] == timers[consumer_session_key(GROUP, "b")] == 50_000 + SESSION_MS
    assert timers["consumer rebalance", GROUP, "a"] == 50_000 + REBALANCE_MS
    assert ("consumer rebalance", GROUP, "b") not in timers


@pytest.mark.parametrize(
    ("request_", "version", "message"),
    [
        (replace(joining("", "t")), 1, "MemberId can't be empty."),
        (beat(" ", 3), 0, "MemberId can't be empty."),
        (beat("", -1), 0, "MemberId can't be empty."),
        (replace(joining("a", "t"), group_id=" "), 0, "GroupId can't be empty."),
        (joining("a", "t", instance_id=""), 0, "InstanceId can't be empty."),
        (joining("a", "t", rack_id=""), 0, "RackId can't be empty."),
        (joining("a", "t", rebalance_timeout_ms=-1), 0, "RebalanceTimeoutMs must be provided in first request."),
        (joining("a", "t", owned=None), 0, "TopicPartitions must be empty when (re-)joining."),
        (joining("a", "t", owned={ORDERS: frozenset()}), 0, "TopicPartitions must be empty when (re-)joining."),
        (
            joining("a", topics=None),
            0,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (beat("a", -2), 0, "InstanceId can't be null."),
        (beat("a", -3), 0, "MemberEpoch is invalid."),
    ],
)
def test_requests_that_are_wrong_whatever_the_group_is(request_: Heartbeat, version: int, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        check_heartbeat(request_, version, CONFIG)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REQUEST, message)


def test_an_assignor_that_is_not_configured() -> None:
    with pytest.raises(ApiError) as refused:
        check_heartbeat(joining("a", "t", assignor="own"), 1, CONFIG)
    assert (refused.value.code, refused.value.message) == (
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        "ServerAssignor own is not supported. Supported assignors: uniform, range.",
    )


def test_requests_that_are_right() -> None:
    for version, right in ((0, joining("", "t")), (1, joining("a", "t")), (1, beat("a", -2, instance_id="i"))):
        check_heartbeat(right, version, CONFIG)
