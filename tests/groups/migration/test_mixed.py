"""Classic members of a consumer group: they join again when they are told to, and have what the broker gave them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moldau.core.errors import ErrorCode
from moldau.groups.classic.members import Protocol
from moldau.groups.consumer.members import MemberState
from tests.groups.consumer.worlds import CONFIG, ConsumerWorld, beat, topic_id
from tests.groups.migration.worlds import (
    REBALANCE_MS,
    SESSION_MS,
    MixedWorld,
    assignment,
    partitions_of,
    subscription,
)


def upgraded() -> tuple[MixedWorld, int]:
    """A classic member that has everything, one of the new protocol that waits, and the classic one's generation."""
    mixed = MixedWorld()
    mixed.stand(a=assignment(0, 1, 2, 3))
    mixed.world.join("c")
    return mixed, mixed.world.group.members["a"].epoch


def test_an_eager_member_joins_once_and_has_its_part() -> None:
    mixed, generation = upgraded()
    assert mixed.heartbeat("a", generation) is ErrorCode.REBALANCE_IN_PROGRESS
    again, partitions = mixed.rejoin("a")
    assert (again, len(partitions)) == (generation + 1, 2)
    assert mixed.heartbeat("a", again) is ErrorCode.NONE
    mixed.world.beat("c")
    assert mixed.world.assigned("c") == {0, 1, 2, 3} - partitions


def test_a_cooperative_member_gives_up_first_and_joins_again() -> None:
    mixed, generation = upgraded()
    kept_generation, kept = mixed.rejoin("a", 0, 1, 2, 3)
    assert (kept_generation, len(kept)) == (generation, 2)
    assert mixed.heartbeat("a", generation) is ErrorCode.REBALANCE_IN_PROGRESS
    mixed.world.beat("c")
    assert mixed.world.assigned("c") == set(), "the others are not given up yet"
    again, partitions = mixed.rejoin("a", *kept)
    assert (again, partitions) == (generation + 1, kept)
    mixed.world.beat("c")
    assert mixed.world.assigned("c") == {0, 1, 2, 3} - kept


def test_the_answer_to_a_join_names_no_leader_and_no_members() -> None:
    mixed, generation = upgraded()
    joined = mixed.join("a", protocols=(Protocol("own", subscription()), Protocol("range", subscription())))
    assert (joined.generation_id, joined.protocol_type, joined.protocol_name) == (generation + 1, "consumer", "own")
    assert (joined.leader, joined.members, joined.member_id) == ("", [], "a")


def test_a_newcomer_hears_of_its_id_first() -> None:
    mixed, _ = upgraded()
    told = mixed.join("", new_member_id="b", must_know_id=True)
    assert (told.error_code, told.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "b")
    assert "b" not in mixed.world.group.members
    joined = mixed.join("b", must_know_id=True)
    assert (joined.error_code, joined.member_id) == (ErrorCode.NONE, "b")


def test_a_member_that_waits_for_others_is_told_when_it_need_not_wait() -> None:
    mixed = MixedWorld()
    mixed.world.join("c")
    generation, partitions = mixed.rejoin("a")
    assert partitions == set()
    assert mixed.world.group.members["a"].progress.state is MemberState.UNRELEASED
    assert mixed.heartbeat("a", generation) is ErrorCode.NONE
    mixed.world.settle("c")
    assert mixed.heartbeat("a", generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(mixed.rejoin("a")[1]) == 2


def test_topics_that_it_wants_no_more_are_taken() -> None:
    mixed = MixedWorld(ConsumerWorld({"orders": 2, "others": 2}))
    mixed.world.join("c", "others")
    both = (Protocol("range", subscription(topics=("orders", "others"))),)
    mixed.rejoin("a", protocols=both)
    assert mixed.world.assigned("a") == {0, 1}
    others = (Protocol("range", subscription(topics=("others",))),)
    mixed.rejoin("a", protocols=others)
    assert mixed.world.assigned("a") == set()
    assert topic_id("orders") not in mixed.world.group.owners


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (Protocol("own", subscription()),)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (Protocol("range", b"?"),)}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_not_join(values: dict[str, Any], error: ErrorCode) -> None:
    mixed, _ = upgraded()
    before = mixed.world.group.copy()
    assert mixed.join("b", **values).error_code == error
    assert mixed.world.group == before


def test_a_full_group_has_room_for_its_own_members_only() -> None:
    mixed = MixedWorld(ConsumerWorld(config=replace(CONFIG, max_size=2)))
    mixed.world.join("c")
    mixed.rejoin("a")
    assert mixed.join("b").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    mixed.rejoin("a")


def test_without_migration_no_classic_member_joins() -> None:
    mixed = MixedWorld(ConsumerWorld(config=replace(CONFIG, migration_policy="disabled")))
    mixed.world.join("c")
    assert mixed.join("a").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "c"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 99}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_name": "own"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "own"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({}, ErrorCode.REBALANCE_IN_PROGRESS),
    ],
)
def test_who_may_not_sync(values: dict[str, Any], error: ErrorCode) -> None:
    mixed, generation = upgraded()
    assert mixed.sync(**{"member_id": "a", "generation": generation, **values}).error_code == error


def test_whose_heartbeat_is_refused() -> None:
    mixed, generation = upgraded()
    assert mixed.heartbeat("stranger", generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert mixed.heartbeat("c", generation + 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert mixed.heartbeat("a", generation + 1) is ErrorCode.ILLEGAL_GENERATION


def test_a_static_member_restarts_in_its_own_place() -> None:
    mixed = MixedWorld()
    mixed.world.join("c")
    mixed.join("", new_member_id="a", instance_id="i")
    mixed.world.settle("c")
    before = mixed.rejoin("a", instance_id="i")[1]
    assert mixed.rejoin("", new_member_id="b", instance_id="i")[1] == before
    assert mixed.heartbeat("a", 1, "i") is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_may_come_back_with_the_new_protocol() -> None:
    mixed = MixedWorld()
    mixed.world.join("c")
    mixed.join("", new_member_id="a", instance_id="i")
    reply = mixed.world.join("b", instance_id="i")
    assert reply.error_code == ErrorCode.NONE
    assert not mixed.world.group.members["b"].is_classic


def test_who_does_not_join_again_in_time_is_gone() -> None:
    mixed, generation = upgraded()
    waited_ms = 0
    while waited_ms < REBALANCE_MS:
        assert mixed.heartbeat("a", generation) is ErrorCode.REBALANCE_IN_PROGRESS
        mixed.world.beat("c")
        mixed.world.pass_time(SESSION_MS - 1)
        waited_ms += SESSION_MS - 1
        if "a" not in mixed.world.group.members:
            break
    assert REBALANCE_MS <= waited_ms < REBALANCE_MS + SESSION_MS
    assert set(mixed.world.group.members) == {"c"}


def test_who_does_not_fetch_its_assignment_in_time_is_gone() -> None:
    mixed, _ = upgraded()
    joined = mixed.join("a")
    for _ in range(3):
        mixed.world.pass_time(SESSION_MS - 1)
        mixed.heartbeat("a", joined.generation_id)
        mixed.world.beat("c")
    assert "a" in mixed.world.group.members
    mixed.world.pass_time(3)
    assert set(mixed.world.group.members) == {"c"}


def test_a_lone_member_of_the_new_protocol_gets_everything_back() -> None:
    mixed, _ = upgraded()
    mixed.rejoin("a")
    mixed.leave("a")
    mixed.world.settle("c")
    assert mixed.world.assigned("c") == {0, 1, 2, 3}
    assert mixed.world.send(beat("a", 2)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_what_a_member_has_is_told_by_the_names_of_topics() -> None:
    mixed, _ = upgraded()
    joined = mixed.join("a")
    synced = mixed.sync("a", joined.generation_id, protocol_type="consumer", protocol_name="range")
    assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")
    assert partitions_of(synced.assignment) == mixed.world.assigned("a")
