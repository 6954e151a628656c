from __future__ import annotations

from moldau.core.errors import ErrorCode
from moldau.groups.classic.group import Group
from moldau.groups.consumer.view import described_consumer_group
from moldau.wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions
from tests.groups.consumer.worlds import GROUP, ConsumerWorld, topic_id

ASSIGNORS = ("uniform", "range")


def described(world: ConsumerWorld, group_id: str = GROUP) -> DescribedGroup:
    return described_consumer_group(world.shard, group_id, topics=world.topics, assignors=ASSIGNORS)


def held(*partitions: int) -> Assignment:
    return Assignment([TopicPartitions(topic_id("orders"), "orders", list(partitions))])


def test_a_member_shows_what_it_has_and_what_it_is_to_have() -> None:
    world = ConsumerWorld({"orders": 2})
    world.join("a", rack_id="r", instance_id="i", assignor="range")
    world.join("b")
    world.beat("a")
    shown = described(world)
    assert (shown.group_state, shown.group_epoch, shown.assignment_epoch) == ("Reconciling", 3, 3)
    assert shown.assignor_name == "range"
    assert shown.members[0] == Member(
        member_id="a",
        instance_id="i",
        rack_id="r",
        member_epoch=2,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["orders"],
        subscribed_topic_regex="",
        assignment=held(0, 1),
        target_assignment=held(0),
        member_type=1,
    )


def test_a_topic_that_is_gone_is_not_shown() -> None:
    world = ConsumerWorld({"orders": 2})
    world.join("a")
    world.change_topics(orders=0)
    (member,) = described(world).members
    assert (member.assignment, member.target_assignment) == (Assignment([]), Assignment([]))


def test_a_group_that_is_not_there_or_of_the_other_kind() -> None:
    world = ConsumerWorld()
    world.shard.groups["old"] = Group("old")
    for group_id, reason in ((GROUP, "not found"), ("old", "is not a consumer group")):
        assert described(world, group_id) == DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=f"Group {group_id} {reason}.", group_id=group_id
        )
