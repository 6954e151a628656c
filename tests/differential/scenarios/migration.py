"""Groups that go from the classic protocol to the new one and back, with members of both kinds in between.

The range assignor is asked for, and instance ids order the members, so that both brokers give the same partitions.
"""

from __future__ import annotations

from typing import Any

from tests.differential.scenarios.consumer_groups import beat, look, new_group, owning
from tests.differential.scenarios.consumer_groups import join as join_new
from tests.differential.scenarios.groups import (
    commit,
    committing,
    coordinator,
    describe,
    enter,
    heartbeat,
    join,
    leave,
    sync,
)
from tests.differential.world import Topic, World

JOIN_VERSION = SYNC_VERSION = 5
PARTITIONS = 4


def text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode()


def partitions(topic: Topic, *numbers: int) -> bytes:
    """A list of topics with their partitions, as both the subscription and the assignment have it."""
    if not numbers:
        return bytes(4)
    listed = b"".join(number.to_bytes(4, "big") for number in numbers)
    return (1).to_bytes(4, "big") + text(topic.name) + len(numbers).to_bytes(4, "big") + listed


def subscription(topic: Topic, *owned: int, version: int = 1, rack: bytes = b"\xff\xff") -> bytes:
    start = version.to_bytes(2, "big") + (1).to_bytes(4, "big") + text(topic.name) + b"\xff" * 4
    more = (b"", partitions(topic, *owned), b"\xff" * 4, rack)
    return start + b"".join(more[: version + 1])


def assignment(topic: Topic, *numbers: int, user_data: bytes = b"\xff" * 4) -> bytes:
    return b"\0\1" + partitions(topic, *numbers) + user_data


def knowing(metadata: bytes, *names: str) -> list[dict[str, Any]]:
    return [{"name": name, "metadata": metadata} for name in names or ("range",)]


def alone(world: World, name: str, topic: Topic, *, given: bytes | None = None, **more: Any) -> str:
    """A classic group of one member that has everything."""
    more.setdefault("protocols", knowing(subscription(topic)))
    member = enter(world, name, **more)
    all_of_it = assignment(topic, *range(PARTITIONS)) if given is None else given
    assigned = [{"member_id": member, "assignment": all_of_it}]
    sync(world, SYNC_VERSION, "all", name, member, assignments=assigned, protocol_name=more["protocols"][0]["name"])
    return member


def generation_of(answer: Any) -> int:
    return int(answer["generation_id"])


def eager_members(world: World) -> None:
    coordinator(world)
    topic = world.topic("t", partitions=PARTITIONS)
    name = new_group(world, "g")
    protocols = knowing(subscription(topic))
    old = alone(world, name, topic, group_instance_id="a", protocols=protocols)
    commit(world, 7, "in the classic group", name, committing(topic, 7), generation_id_or_member_epoch=1,
           member_id=old, group_instance_id="a")  # fmt: skip
    static: dict[str, Any] = {"group_instance_id": "a"}
    first = join_new(world, "upgrades", name, "new", topic, server_assignor="range", instance_id="b")
    look(world, "both kinds", name)
    describe(world, "as classic", name)
    heartbeat(world, name, old, 1, **static)
    sync(world, SYNC_VERSION, "too early", name, old, **static)
    commit(world, 7, "of what it has", name, committing(topic, 8), generation_id_or_member_epoch=1, member_id=old,
           **static)  # fmt: skip
    again = join(world, JOIN_VERSION, "again", name, old, protocols=protocols, **static)
    generation = generation_of(again)
    sync(world, SYNC_VERSION, "other protocol", name, old, generation_id=generation, protocol_name="own", **static)
    sync(world, SYNC_VERSION, "other type", name, old, generation_id=generation, protocol_type="own", **static)
    sync(world, SYNC_VERSION, "old generation", name, old, generation_id=1, **static)
    for version in (3, 4, 5):
        sync(world, version, "what it has", name, old, generation_id=generation, **static)
    heartbeat(world, name, old, generation, **static)
    heartbeat(world, name, old, generation + 1, **static)
    heartbeat(world, name, "stranger", generation)
    heartbeat(world, name, "new", first["member_epoch"])
    heartbeat(world, name, "stranger", generation, **static)
    second = beat(world, "gets its part", name, "new", first["member_epoch"], topic_partitions=[], instance_id="b")
    look(world, "shared", name)
    commit(world, 7, "late", name, committing(topic, 9, 3), generation_id_or_member_epoch=1, member_id=old, **static)
    commit(world, 7, "in time", name, committing(topic, 9), generation_id_or_member_epoch=generation, member_id=old,
           **static)  # fmt: skip
    beat(world, "leaves", name, "new", -1, instance_id="b")
    describe(world, "classic again", name)
    heartbeat(world, name, old, generation, **static)
    last = join(world, JOIN_VERSION, "rejoin", name, old, protocols=protocols, **static)
    sync(world, SYNC_VERSION, "all", name, old, generation_id=generation_of(last), **static,
         assignments=[{"member_id": old, "assignment": assignment(topic, 0, 1, 2, 3)}])  # fmt: skip
    heartbeat(world, name, old, generation_of(last), **static)
    beat(world, "is gone", name, "new", second["member_epoch"])
    describe(world, "stable", name)


def cooperative_members(world: World) -> None:
    coordinator(world)
    topic = world.topic("t", partitions=PARTITIONS)
    name = new_group(world, "g")
    for version in (1, 2, 3):
        name = new_group(world, f"v{version}")
        old = alone(world, name, topic, protocols=knowing(subscription(topic, version=version), "own", "range"))
        first = join_new(world, "upgrades", name, "new", topic, server_assignor="range", instance_id="b")

        def again(note: str, *owned: int, version: int = version, name: str = name, old: str = old) -> int:
            known = knowing(subscription(topic, *owned, version=version), "own", "range")
            answer = join(world, JOIN_VERSION, note, name, old, protocols=known)
            sync(world, SYNC_VERSION, note, name, old, generation_id=generation_of(answer), protocol_name="own")
            heartbeat(world, name, old, generation_of(answer))
            return generation_of(answer)

        again("has all", 0, 1, 2, 3)
        beat(world, "waits", name, "new", first["member_epoch"], topic_partitions=[], instance_id="b")
        again("has all still", 0, 1, 2, 3)
        look(world, "gives up", name)
        generation = again("has some", 2, 3)
        beat(world, "gets its part", name, "new", first["member_epoch"], topic_partitions=[], instance_id="b")
        heartbeat(world, name, old, generation)
        join_new(world, "third", name, "third", topic, server_assignor="range", instance_id="c")
        heartbeat(world, name, old, generation)
        again("less", 2, 3)
        leave(world, 5, "third", name, "third", group_instance_id="c")
        look(world, "left", name)
        leave(world, 5, "old", name, old)
        look(world, "new ones only", name)


def classic_members_come_later(world: World) -> None:
    coordinator(world)
    topic = world.topic("t", partitions=PARTITIONS)
    name = new_group(world, "g")
    first = join_new(world, "first", name, "new", topic, server_assignor="range", instance_id="b")
    protocols = knowing(subscription(topic), "range", "own")
    for version in (3, 4, 9):
        join(world, version, "no protocols", name, protocols=[])
        join(world, version, "other type", name, protocol_type="connect")
        join(world, version, "short session", name, session_timeout_ms=1)
    for version in (5, 9):
        join(world, version, "stranger with an instance", name, "stranger", protocols=protocols, group_instance_id="x")
        join(world, version, "stranger with another's", name, "stranger", protocols=protocols, group_instance_id="b")
    old = join(world, JOIN_VERSION, "static", name, protocols=protocols, group_instance_id="a")
    member, generation = str(old["member_id"]), generation_of(old)
    look(world, "three", name)
    sync(world, SYNC_VERSION, "waits", name, member, generation_id=generation, group_instance_id="a")
    heartbeat(world, name, member, generation, group_instance_id="a")
    second = beat(world, "gives up", name, "new", first["member_epoch"], topic_partitions=owning(topic, 2, 3),
                  instance_id="b")  # fmt: skip
    beat(world, "gave up", name, "new", second["member_epoch"], topic_partitions=owning(topic, 2, 3), instance_id="b")
    heartbeat(world, name, member, generation, group_instance_id="a")
    answer = join(world, JOIN_VERSION, "again", name, member, protocols=protocols, group_instance_id="a")
    sync(world, SYNC_VERSION, "half", name, member, generation_id=generation_of(answer), group_instance_id="a")
    join(world, 3, "own protocol", name, protocols=knowing(subscription(topic), "another"))
    restarted = join(world, JOIN_VERSION, "restarted", name, protocols=protocols, group_instance_id="a")
    sync(world, SYNC_VERSION, "as before", name, restarted["member_id"], generation_id=generation_of(restarted),
         group_instance_id="a")  # fmt: skip
    heartbeat(world, name, member, generation, group_instance_id="a")
    heartbeat(world, name, str(restarted["member_id"]), generation_of(restarted), group_instance_id="a")
    look(world, "restarted", name)
    back = join(world, JOIN_VERSION, "the last goes back", name, protocols=protocols, group_instance_id="b")
    answer = world.quietly("DescribeGroups", 5, groups=[name])
    answer["groups"][0]["members"].sort(key=lambda one: str(one["group_instance_id"]))
    world.note("DescribeGroups of both", answer)
    heartbeat(world, name, str(back["member_id"]), generation_of(back), group_instance_id="b")
    sync(
        world, SYNC_VERSION, "in it", name, back["member_id"], generation_id=generation_of(back), group_instance_id="b"
    )


def upgrades_refused(world: World) -> None:
    coordinator(world)
    topic = world.topic("t", partitions=PARTITIONS)
    cases: dict[str, dict[str, Any]] = {
        "connect": {"protocol_type": "connect"},
        "malformed": {"protocols": knowing(b"\0\1")},
        "old": {"protocols": knowing(b"\xff\xff" + subscription(topic)[2:])},
        "future": {"protocols": knowing(b"\0\7" + subscription(topic, version=3)[2:])},
    }
    for case, more in cases.items():
        name = new_group(world, case)
        enter(world, name, **more)
        join_new(world, case, name, "new", topic, server_assignor="range", instance_id="b")
    custom = {"user": assignment(topic, 0, user_data=b"\0\0\0\1x"), "none": b"", "short": b"\0"}
    for case, given in custom.items():
        name = new_group(world, case)
        alone(world, name, topic, given=given)
        join_new(world, case, name, "new", topic, server_assignor="range", instance_id="b")
        describe(world, case, name)


SCENARIOS = (eager_members, cooperative_members, classic_members_come_later, upgrades_refused)
