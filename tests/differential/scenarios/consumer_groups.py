"""Consumer groups of the new protocol: heartbeats from joining to leaving, their offsets, and what is told of them.

The range assignor is asked for wherever several members share partitions: it gives the same ones on every broker.
"""

from __future__ import annotations

from typing import Any

from tests.differential.scenarios.groups import (
    assigned,
    commit,
    committing,
    coordinator,
    describe,
    enter,
    group,
    sync,
)
from tests.differential.schema import versions
from tests.differential.world import Topic, World

GROUP_RESOURCE = 32
SET = 0
NEWEST = 1


def new_group(world: World, suffix: str) -> str:
    """A group that is assigned as soon as there is a reason, so that nothing depends on time."""
    name = group(world, suffix)
    config = {"name": "consumer.assignment.interval.ms", "config_operation": SET, "value": "0"}
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": name, "configs": [config]}
    answer = world.quietly("IncrementalAlterConfigs", 1, resources=[resource])
    assert answer["responses"][0]["error_code"] == 0, answer
    return name


def beat(world: World, note: str, group_id: str, member_id: str, epoch: int, **more: Any) -> Any:
    """A heartbeat; of its newest version, without anything that did not change."""
    version = more.pop("version", NEWEST)
    fields = {
        "group_id": group_id,
        "member_id": member_id,
        "member_epoch": epoch,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": -1,
        "subscribed_topic_names": None,
        "server_assignor": None,
        "topic_partitions": None,
        **more,
    }
    if version >= 1:
        fields.setdefault("subscribed_topic_regex", None)
    answer = world.quietly("ConsumerGroupHeartbeat", version, **fields)
    world.note(f"ConsumerGroupHeartbeat v{version} {note}", in_order(answer))
    return answer


def join(world: World, note: str, group_id: str, member_id: str, *topics: Topic, **more: Any) -> Any:
    values: dict[str, Any] = {
        "rebalance_timeout_ms": 20_000,
        "subscribed_topic_names": [topic.name for topic in topics],
        "topic_partitions": [],
        **more,
    }
    return beat(world, note, group_id, member_id, 0, **values)


def owning(topic: Topic, *partitions: int) -> list[dict[str, Any]]:
    return [{"topic_id": topic.id, "partitions": list(partitions)}]


def in_order(answer: Any) -> Any:
    assignment = answer.get("assignment") if isinstance(answer, dict) else None
    if not assignment:
        return answer
    topics = sorted(assignment["topic_partitions"], key=lambda one: len(one["partitions"]))
    return {**answer, "assignment": {**assignment, "topic_partitions": topics}}


def look(world: World, note: str, *group_ids: str) -> None:
    for version in versions("ConsumerGroupDescribe"):
        answer = world.quietly(
            "ConsumerGroupDescribe", version, group_ids=list(group_ids), include_authorized_operations=version == 1
        )
        for described in answer["groups"]:
            described["members"].sort(key=lambda one: str(one["instance_id"]) + one["member_id"])
            for member in described["members"]:
                member["subscribed_topic_names"].sort()
                for held in (member["assignment"], member["target_assignment"]):
                    held["topic_partitions"].sort(key=lambda one: str(one["topic_name"]))
                    for each in held["topic_partitions"]:
                        each["partitions"].sort()
        world.note(f"ConsumerGroupDescribe v{version} {note}", answer)


def fetch(world: World, note: str, group_id: str, topic: Topic, **more: Any) -> None:
    for version in (9, 10):
        asked = [{"name": topic.name, "topic_id": topic.id, "partition_indexes": [0, 1]}]
        groups = [{"group_id": group_id, "topics": asked, **more}]
        world.ask("OffsetFetch", version, note, groups=groups)


def a_lone_member(world: World) -> None:
    coordinator(world)
    topic, other = world.topic("t", partitions=3), world.topic("other")
    for version in versions("ConsumerGroupHeartbeat"):
        name = new_group(world, f"v{version}")
        joined = join(world, "join", name, "" if version == 0 else "id-m", topic, version=version, rack_id="r")
        member, epoch = joined["member_id"], joined["member_epoch"]
        beat(world, "steady", name, member, epoch, version=version)
        beat(world, "owning", name, member, epoch, topic_partitions=owning(topic, 0, 1, 2), version=version)
        full = {
            "rebalance_timeout_ms": 20_000,
            "subscribed_topic_names": [topic.name],
            "topic_partitions": owning(topic, 0),
        }
        beat(world, "full", name, member, epoch, version=version, **full)
        look(world, "stable", name)
        describe(world, "as classic", name)
        for commit_version in (2, 8, 9, 10):
            for told in (epoch, epoch - 1, epoch + 1, -1):
                commit(
                    world, commit_version, f"epoch {told}", name, committing(topic, 5), member_id=member,
                    generation_id_or_member_epoch=told,
                )  # fmt: skip
            commit(world, commit_version, "from outside", name, committing(topic, 6))
            commit(
                world, commit_version, "stranger", name, committing(topic, 6), member_id="id-x",
                generation_id_or_member_epoch=epoch,
            )  # fmt: skip
        fetch(world, "nobody", name, topic)
        for told in (epoch, epoch - 1, epoch + 1, -1):
            fetch(world, f"epoch {told}", name, topic, member_id=member, member_epoch=told)
        fetch(world, "stranger", name, topic, member_id="id-x", member_epoch=epoch)
        beat(world, "other topics", name, member, epoch, version=version, subscribed_topic_names=[other.name])
        beat(world, "given up", name, member, epoch, version=version, topic_partitions=[])
        beat(world, "and now", name, member, epoch + 1, version=version, topic_partitions=owning(other, 0))
        commit(world, 9, "of before", name, committing(topic, 7), member_id=member, generation_id_or_member_epoch=epoch)
        commit(world, 9, "too early", name, committing(other, 7), member_id=member, generation_id_or_member_epoch=epoch)
        look(world, "other topics", name)
        beat(world, "leave", name, member, -1, version=version)
        look(world, "left", name)
        beat(world, "after", name, member, epoch, version=version)
        beat(world, "leave again", name, member, -1, version=version)
        commit(world, 9, "of none", name, committing(topic, 8))


def mistakes(world: World) -> None:
    coordinator(world)
    topic = world.topic("t", partitions=3)
    name = new_group(world, "g")
    for version in versions("ConsumerGroupHeartbeat"):
        right: dict[str, Any] = {"version": version}
        join(world, "no group", "", "id-m", topic, **right)
        join(world, "blank group", "  ", "id-m", topic, **right)
        join(world, "no instance", name, "id-m", topic, instance_id="", **right)
        join(world, "no rack", name, "id-m", topic, rack_id=" ", **right)
        join(world, "no time", name, "id-m", topic, rebalance_timeout_ms=-1, **right)
        join(world, "owning", name, "id-m", topic, topic_partitions=owning(topic, 1), **right)
        join(world, "owning what", name, "id-m", topic, topic_partitions=None, **right)
        join(world, "subscribed to what", name, "id-m", subscribed_topic_names=None, **right)
        join(world, "assignor", name, "id-m", topic, server_assignor="own", **right)
        join(world, "no assignor", name, "id-m", topic, server_assignor="", **right)
        beat(world, "no group yet", name, "id-m", 3, **right)
        beat(world, "no id", name, "", 3, **right)
        beat(world, "leave nothing", name, "id-m", -1, **right)
        beat(world, "leave without id", name, "", -1, **right)
        beat(world, "leave for a while, who", name, "id-m", -2, **right)
        beat(world, "leave for a while", name, "id-m", -2, instance_id="i", **right)
        beat(world, "epoch", name, "id-m", -3, **right)
    join(world, "no id", name, "", topic)
    epoch = join(world, "right", name, "id-m", topic)["member_epoch"]
    beat(world, "greater", name, "id-m", epoch + 1)
    beat(world, "smaller", name, "id-m", epoch - 1)
    beat(world, "stranger", name, "id-x", epoch)
    beat(world, "unknown instance", name, "id-m", epoch, instance_id="i")
    beat(world, "leave, stranger", name, "id-x", -1)
    beat(world, "leave, unknown instance", name, "id-m", -1, instance_id="i")
    beat(world, "leave for a while", name, "id-m", -2, instance_id="i")
    join(world, "again", name, "id-m", topic)
    join(world, "again, other topics", name, "id-m")
    look(world, "several", name, f"{name}-no", "")


def members_share(world: World) -> None:
    coordinator(world)
    topic = world.topic("t", partitions=3)
    name = new_group(world, "g")
    ranged = {"server_assignor": "range"}
    first = join(world, "a", name, "id-a", topic, **ranged)["member_epoch"]
    second = join(world, "b", name, "id-b", topic, **ranged)["member_epoch"]
    look(world, "two", name)
    beat(world, "b waits", name, "id-b", second, topic_partitions=[])
    beat(world, "a must give up", name, "id-a", first, topic_partitions=owning(topic, 0, 1, 2))
    look(world, "unrevoked", name)
    beat(world, "a says nothing", name, "id-a", first)
    commit(world, 9, "a while it gives up", name, committing(topic, 4, 2), member_id="id-a",
           generation_id_or_member_epoch=first)  # fmt: skip
    beat(world, "b waits still", name, "id-b", second, topic_partitions=[])
    moved = beat(world, "a gave up", name, "id-a", first, topic_partitions=owning(topic, 0, 1))["member_epoch"]
    commit(world, 9, "a of what it gave up", name, committing(topic, 4, 2), member_id="id-a",
           generation_id_or_member_epoch=first)  # fmt: skip
    commit(world, 9, "a of what it kept", name, committing(topic, 4, 1), member_id="id-a",
           generation_id_or_member_epoch=first)  # fmt: skip
    beat(world, "b has it", name, "id-b", second, topic_partitions=[])
    beat(world, "a missed the answer", name, "id-a", first, topic_partitions=owning(topic, 0))
    beat(world, "a missed it and has too much", name, "id-a", first, topic_partitions=owning(topic, 0, 2))
    look(world, "stable", name)
    join(world, "c", name, "id-c", topic)
    beat(world, "a must give up again", name, "id-a", moved, topic_partitions=owning(topic, 0, 1))
    beat(world, "b must give up", name, "id-b", second, topic_partitions=owning(topic, 2))
    look(world, "three", name)
    beat(world, "c leaves", name, "id-c", -1)
    beat(world, "a keeps what it said it has", name, "id-a", moved, topic_partitions=owning(topic, 0))
    beat(world, "a once more", name, "id-a", moved + 2, topic_partitions=owning(topic, 0))
    world.ask(
        "LeaveGroup", 5, "by an administrator", group_id=name,
        members=[{"member_id": each, "group_instance_id": None} for each in ("id-b", "nobody")],
    )  # fmt: skip
    beat(world, "b was removed", name, "id-b", second + 1)
    look(world, "one", name)
    for version in versions("DeleteGroups"):
        world.ask("DeleteGroups", version, groups_names=[name])
    world.ask("OffsetDelete", 0, group_id=name,
              topics=[{"name": topic.name, "partitions": [{"partition_index": 1}]}])  # fmt: skip


def static_members(world: World) -> None:
    coordinator(world)
    topic = world.topic("t", partitions=2)
    name = new_group(world, "g")
    static = {"instance_id": "i"}
    epoch = join(world, "a", name, "id-a", topic, **static)["member_epoch"]
    join(world, "b while a is there", name, "id-b", topic, **static)
    beat(world, "b", name, "id-b", epoch, **static)
    beat(world, "b leaves", name, "id-b", -2, **static)
    beat(world, "a leaves for a while", name, "id-a", -2, **static)
    look(world, "away", name)
    beat(world, "a has left", name, "id-a", epoch, **static)
    commit(world, 9, "a has left", name, committing(topic, 4), member_id="id-a", generation_id_or_member_epoch=epoch)
    epoch = join(world, "b in its place", name, "id-b", topic, **static)["member_epoch"]
    look(world, "back", name)
    beat(world, "a is fenced", name, "id-a", epoch, **static)
    beat(world, "b stays", name, "id-b", epoch, **static)
    beat(world, "b without instance", name, "id-b", epoch)
    for note, leaving in (
        ("wrong id", {"member_id": "id-a", "group_instance_id": "i"}),
        ("unknown", {"member_id": "", "group_instance_id": "j"}),
        ("by instance", {"member_id": "", "group_instance_id": "i"}),
    ):
        world.ask("LeaveGroup", 5, note, group_id=name, members=[leaving])
    look(world, "left", name)


def regular_expressions(world: World) -> None:
    coordinator(world)
    topic, other = world.topic("t-one", partitions=2), world.topic("other")
    name = new_group(world, "g")
    for regex in ("(", "[z-a]", "a{2,1}", "*", "(?=x)", "\\"):
        join(world, f"wrong {regex}", name, "id-m", subscribed_topic_names=None, subscribed_topic_regex=regex)
    pattern = f"{world.name}-t-.*"
    epoch = join(world, "join", name, "id-m", subscribed_topic_names=None, subscribed_topic_regex=pattern)[
        "member_epoch"
    ]
    settle(world, name, "id-m", epoch)
    look(world, "found", name)
    added = join(world, "another", name, "id-n", other, subscribed_topic_regex=pattern)["member_epoch"]
    look(world, "two", name)
    beat(world, "no pattern any more", name, "id-n", added, subscribed_topic_regex="")
    look(world, "one pattern", name)
    beat(world, "leave", name, "id-m", -1)
    look(world, "no pattern", name)
    world.note("topics", [topic.name, other.name])


def settle(world: World, group_id: str, member_id: str, epoch: int) -> None:
    """Resolving takes its time, after which a heartbeat brings the assignment."""

    def has_assignment() -> bool:
        answer = world.quietly(
            "ConsumerGroupHeartbeat", NEWEST, group_id=group_id, member_id=member_id, member_epoch=epoch,
            topic_partitions=[], rebalance_timeout_ms=-1, subscribed_topic_names=None,
        )  # fmt: skip
        return bool(answer["assignment"] and answer["assignment"]["topic_partitions"])

    world.until(has_assignment, "an assignment")


def topics_come_and_go(world: World) -> None:
    coordinator(world)
    topic, later = world.topic("t"), Topic(f"{world.name}-later", b"")
    name = new_group(world, "g")
    epoch = join(world, "join", name, "id-m", topic, later)["member_epoch"]
    later = world.topic("later", partitions=2)
    epoch = next_epoch(world, name, epoch)
    look(world, "a topic came", name)
    world.quietly(
        "CreatePartitions", 3, topics=[{"name": later.name, "count": 3, "assignments": None}], timeout_ms=9_000
    )
    world.until_ready(later.name, 3)
    epoch = next_epoch(world, name, epoch)
    look(world, "it grew", name)
    world.quietly("DeleteTopics", 5, topic_names=[later.name], timeout_ms=9_000)
    world.until_gone(later.name)
    next_epoch(world, name, epoch)
    look(world, "it went", name)


def next_epoch(world: World, group_id: str, epoch: int) -> int:
    """Send heartbeats, with everything given up that is to be, until the group is at its next epoch."""
    fields: dict[str, Any] = {
        "rebalance_timeout_ms": -1,
        "subscribed_topic_names": None,
        "topic_partitions": [],
    }
    seen = epoch

    def has_moved() -> bool:
        nonlocal seen
        answer = world.quietly(
            "ConsumerGroupHeartbeat", NEWEST, group_id=group_id, member_id="id-m", member_epoch=seen, **fields
        )
        seen = answer["member_epoch"]
        return bool(seen > epoch)

    world.until(has_moved, "the next epoch")
    return seen


def one_kind_and_the_other(world: World) -> None:
    """A group without members becomes whatever the next one that comes wants."""
    coordinator(world)
    topic = world.topic("t", partitions=2)
    name, simple = new_group(world, "g"), new_group(world, "simple")
    member = enter(world, name)
    sync(world, 5, "classic", name, member, assignments=assigned(member))
    commit(world, 5, "classic", name, committing(topic, 3), generation_id_or_member_epoch=1, member_id=member)
    look(world, "classic", name)
    beat(world, "of the other kind", name, "id-m", 3)
    beat(world, "leave the other kind", name, "id-m", -1)
    world.ask("LeaveGroup", 5, group_id=name, members=[{"member_id": member, "group_instance_id": None}])
    join(world, "after a classic one", name, "id-m", topic)
    look(world, "consumer", name)
    describe(world, "consumer", name)
    fetch(world, "offsets stay", name, topic)
    world.ask("Heartbeat", 4, "classic member", group_id=name, member_id=member, generation_id=1)
    world.ask("Heartbeat", 4, "consumer member", group_id=name, member_id="id-m", generation_id=2)
    sync(world, 5, "consumer member", name, "id-m")
    lists(world, name)
    beat(world, "leave", name, "id-m", -1)
    lists(world, name)
    enter(world, name, note="after a consumer one")
    look(world, "classic again", name)
    fetch(world, "offsets stay still", name, topic)
    commit(world, 9, "simple", simple, committing(topic, 3))
    join(world, "after a simple one", simple, "id-m", topic)
    look(world, "after a simple one", simple)
    fetch(world, "of a simple one", simple, topic)


def lists(world: World, name: str) -> None:
    for chosen in ({}, {"types_filter": ["consumer"]}, {"types_filter": ["classic"]}, {"states_filter": ["stable"]}):
        answer = world.quietly("ListGroups", 5, **chosen)
        ours = [each for each in answer["groups"] if each["group_id"] == name]
        world.note(f"ListGroups {chosen}", {**answer, "groups": ours})


SCENARIOS = (
    a_lone_member,
    mistakes,
    members_share,
    static_members,
    regular_expressions,
    topics_come_and_go,
    one_kind_and_the_other,
)
