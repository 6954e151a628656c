"""Classic groups: joining, syncing, heartbeats and leaving, committed offsets, and what is told about all of it."""

from __future__ import annotations

from typing import Any

from tests.differential.peer import Answer, Peer
from tests.differential.scenarios.produce import NOWHERE
from tests.differential.schema import versions
from tests.differential.world import Topic, World

EMPTY_SUBSCRIPTION = bytes.fromhex("000000000000ffffffff")
NO_MEMBER = {"generation_id_or_member_epoch": -1, "member_id": ""}


def coordinator(world: World) -> None:
    """Apache Kafka creates the topic of groups when it is first asked for a coordinator, and loads its partitions."""

    def available() -> bool:
        found = world.quietly("FindCoordinator", 3, key=world.name, key_type=0)
        listed = world.quietly("ListGroups", 4)
        return bool(found["error_code"] == listed["error_code"] == 0)

    world.until(available, "a coordinator")


def group(world: World, suffix: str) -> str:
    """A group of this scenario's own whose coordinator answers."""
    name = f"{world.name}-{suffix}"

    def ready() -> bool:
        answer = world.quietly("Heartbeat", 4, group_id=name, generation_id=1, member_id="x")
        return bool(answer["error_code"] == 25)

    world.until(ready, f"the coordinator of {name}")
    return name


def subscription(topic: Topic) -> bytes:
    name = topic.name.encode()
    return b"\0\1" + (1).to_bytes(4, "big") + len(name).to_bytes(2, "big") + name + b"\xff" * 4 + b"\0" * 4


def join(
    world: World, version: int, note: str, group_id: str, member_id: str = "", *, peer: Peer | None = None, **more: Any
) -> Any:
    fields = join_fields(group_id, member_id, **more)
    if peer is None:
        return world.ask("JoinGroup", version, note, **fields)
    answer: Answer = peer.ask("JoinGroup", version, **fields)
    world.note(f"JoinGroup v{version} {note}", answer)
    return answer


def join_fields(group_id: str, member_id: str, **more: Any) -> dict[str, Any]:
    return {
        "group_id": group_id,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 20_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": EMPTY_SUBSCRIPTION}],
        **more,
    }


def enter(world: World, group_id: str, *, version: int = 5, note: str = "enter", **more: Any) -> str:
    """Join as a new client does at that version; gives the member id."""
    answer = join(world, version, note, group_id, **more)
    if answer["error_code"] == 79:
        answer = join(world, version, f"{note} with id", group_id, answer["member_id"], **more)
    return str(answer["member_id"])


def sync(world: World, version: int, note: str, group_id: str, member_id: str, **more: Any) -> Any:
    values: dict[str, Any] = {"generation_id": 1, "protocol_type": "consumer", "protocol_name": "range", **more}
    return world.ask("SyncGroup", version, note, group_id=group_id, member_id=member_id, **values)


def assigned(member_id: str, assignment: bytes = b"mine") -> list[dict[str, Any]]:
    return [{"member_id": member_id, "assignment": assignment}]


def heartbeat(world: World, group_id: str, member_id: str, generation: int = 1, **more: Any) -> None:
    for version in versions("Heartbeat") if not more else (3, 4):
        world.ask("Heartbeat", version, group_id=group_id, member_id=member_id, generation_id=generation, **more)


def commit(world: World, version: int, note: str, group_id: str, *topics: dict[str, Any], **more: Any) -> Any:
    return world.ask("OffsetCommit", version, note, group_id=group_id, topics=list(topics), **{**NO_MEMBER, **more})


def committing(topic: Topic, offset: int, partition: int = 0, **more: Any) -> dict[str, Any]:
    values = {"partition_index": partition, "committed_offset": offset, "committed_metadata": "", **more}
    return {"name": topic.name, "topic_id": topic.id, "partitions": [values]}


def fetch(world: World, version: int, note: str, group_id: str, *topics: tuple[Topic, list[int]], **more: Any) -> None:
    """Without topics, ask for all of them."""
    wanted = [{"name": each.name, "topic_id": each.id, "partition_indexes": indexes} for each, indexes in topics]
    asked: Any = wanted or (None if version >= 2 else [])
    groups = [{"group_id": group_id, "topics": asked}]
    if version >= 8:
        answer = world.quietly("OffsetFetch", version, groups=groups, **more)
        answer["groups"][0]["topics"].sort(key=lambda one: len(one["partitions"]))  # the order by id is chance
        world.note(f"OffsetFetch v{version} {note}", answer)
    else:
        old = [{key: value for key, value in each.items() if key != "topic_id"} for each in wanted]
        world.ask("OffsetFetch", version, note, group_id=group_id, topics=old or asked, **more)


def describe(world: World, note: str, *group_ids: str) -> None:
    for version in versions("DescribeGroups"):
        world.ask(
            "DescribeGroups",
            version,
            note,
            groups=list(group_ids),
            **({"include_authorized_operations": True} if version == 4 else {}),
        )


def finding(world: World) -> None:
    coordinator(world)
    for version in versions("FindCoordinator"):
        for key in ("g", "", "grün"):
            world.ask("FindCoordinator", version, f"key {key}", key=key, coordinator_keys=[key, "x"], key_type=0)


def committed_offsets(world: World) -> None:
    coordinator(world)
    topic, other = world.topic("t", partitions=2), world.topic("other")
    for version in versions("OffsetCommit"):
        name = group(world, f"v{version}")
        commit(world, version, "first", name, committing(topic, 10), committing(other, 5, committed_metadata="note"))
        commit(world, version, "again", name, committing(topic, 11, 1, committed_leader_epoch=0))
        commit(world, version, "null note", name, committing(topic, 12, committed_metadata=None))
        commit(world, version, "long note", name, committing(topic, 13, committed_metadata="n" * 4_097))
        half_known = committing(topic, 2, 7)
        half_known["partitions"] += committing(topic, 3)["partitions"]
        commit(world, version, "unknown", name, committing(NOWHERE, 1), half_known)
        commit(world, version, "negative", name, committing(topic, -1))
        commit(world, version, "nothing", name)
        commit(world, version, "as a member", name, committing(topic, 1), member_id="m")
        commit(
            world,
            version,
            "of a generation",
            name,
            committing(topic, 1),
            generation_id_or_member_epoch=3,
            member_id="m",
        )
        fetch(world, 7, f"after v{version}", name)
    for version in versions("OffsetFetch"):
        name = group(world, "v9" if version < 9 else "v6")
        fetch(world, version, "all", name)
        fetch(world, version, "some", name, (topic, [0, 1, 5]), (NOWHERE, [0]))
        fetch(world, version, "stable", name, (other, [0]), **({"require_stable": True} if version >= 7 else {}))
        fetch(world, version, "nobody", f"{world.name}-nobody", (topic, [0]))
        fetch(world, version, "all of nobody", f"{world.name}-nobody")
    commit(world, 8, "member of no group", f"{world.name}-no", committing(topic, 1), generation_id_or_member_epoch=3)
    commit(world, 9, "member of no group", f"{world.name}-no", committing(topic, 1), generation_id_or_member_epoch=3)


def a_lone_member(world: World) -> None:
    coordinator(world)
    topic = world.topic("t")
    for version in versions("JoinGroup"):
        name = group(world, f"v{version}")
        protocols = [{"name": "range", "metadata": subscription(topic)}, {"name": "sticky", "metadata": b"s"}]
        member = enter(world, name, version=version, protocols=protocols)
        commit(world, 5, "too early", name, committing(topic, 3), generation_id_or_member_epoch=1, member_id=member)
        describe(world, "before sync", name)
        sync(world, min(version, 5), "sync", name, member, assignments=assigned(member))
        sync(world, min(version, 5), "again", name, member)
        join(world, version, "again", name, member, protocols=protocols)
        sync(world, min(version, 5), "second", name, member, generation_id=2, assignments=assigned(member))
        heartbeat(world, name, member, 2)
        heartbeat(world, name, member, 1)
        commit(world, 5, "in time", name, committing(topic, 3), generation_id_or_member_epoch=2, member_id=member)
        commit(world, 5, "too late", name, committing(topic, 3), generation_id_or_member_epoch=1, member_id=member)
        commit(world, 5, "from outside", name, committing(topic, 3))
        describe(world, "stable", name, f"{name}-not")
        leave(world, min(version, 5), "leave", name, member)
        leave(world, min(version, 5), "leave again", name, member)
        describe(world, "left", name)
        fetch(world, 7, "what is left", name)


def leave(world: World, version: int, note: str, group_id: str, *members: str, **more: Any) -> None:
    if version < 3:
        world.ask("LeaveGroup", version, note, group_id=group_id, member_id=members[0])
        return
    leaving = [{"member_id": each, "group_instance_id": None, **more} for each in members]
    world.ask("LeaveGroup", version, note, group_id=group_id, members=leaving)


def mistakes(world: World) -> None:
    coordinator(world)
    name = group(world, "g")
    for version in (0, 3, 5, 9):
        join(world, version, "no group", "")
        join(world, version, "stranger", f"{name}-no", "stranger")
        join(world, version, "short session", name, session_timeout_ms=5_999)
        join(world, version, "long session", name, session_timeout_ms=1_800_001)
        join(world, version, "no type", name, protocol_type="")
        join(world, version, "no protocols", name, protocols=[])
    member = enter(world, name)
    for version in (0, 3, 5, 9):
        join(world, version, "other type", name, protocol_type="connect")
        join(world, version, "other protocol", name, protocols=[{"name": "own", "metadata": b""}])
        join(world, version, "stranger to others", name, "stranger")
    for version in versions("SyncGroup"):
        sync(world, version, "no group", "", member)
        sync(world, version, "stranger", name, "stranger")
        sync(world, version, "no such group", f"{name}-no", member)
        sync(world, version, "generation", name, member, generation_id=9)
        sync(world, version, "other protocol", name, member, protocol_name="own", assignments=assigned(member))
        sync(world, version, "other type", name, member, protocol_type="connect", assignments=assigned(member))
        sync(world, version, "no protocol", name, member, protocol_name=None, assignments=assigned(member))
    for group_id, member_id, generation in (("", member, 1), (name, "x", 1), (f"{name}-no", "x", 1), (name, member, 5)):
        heartbeat(world, group_id, member_id, generation)
    for version in versions("LeaveGroup"):
        leave(world, version, "no group", "", member)
        leave(world, version, "stranger", name, "x")
        leave(world, version, "no such group", f"{name}-no", "x")
        if version >= 3:
            leave(world, version, "nobody", name)
            leave(world, version, "twice", f"{name}-no", "x", "x")


def two_members(world: World) -> None:
    """The second one waits on a connection of its own."""
    coordinator(world)
    name, second = group(world, "g"), world.extra_peer()
    first_id = enter(world, name, note="first")
    sync(world, 5, "first", name, first_id, assignments=assigned(first_id))
    fields: dict[str, Any] = {"protocols": [{"name": "range", "metadata": subscription(NOWHERE)}]}
    required = join(world, 5, "second", name, peer=second, **fields)
    second_id = required["member_id"]
    second.tell("JoinGroup", 5, **join_fields(name, second_id, **fields))
    world.until(lambda: state_of(world, name) == "PreparingRebalance", "a rebalance")
    heartbeat(world, name, first_id)
    sync(world, 5, "during the rebalance", name, first_id)
    describe_members = world.quietly("DescribeGroups", 5, groups=[name])["groups"][0]["members"]
    world.note("members", len(describe_members))
    join(world, 5, "first again", name, first_id)
    world.note("JoinGroup v5 second joined", second.answer("JoinGroup", 5))
    second.tell(
        "SyncGroup", 5, group_id=name, member_id=second_id, generation_id=2, protocol_type="consumer",
        protocol_name="range", assignments=[],
    )  # fmt: skip
    heartbeat(world, name, first_id, 2)
    both = assigned(first_id, b"one") + assigned(second_id, b"two")
    sync(world, 5, "leader", name, first_id, generation_id=2, assignments=both)
    world.note("SyncGroup v5 follower", second.answer("SyncGroup", 5))
    leave(world, 4, "one of two", name, first_id)
    world.ask("Heartbeat", 3, "the other", group_id=name, member_id=second_id, generation_id=2)
    join(world, 5, "alone", name, second_id, **fields)


def state_of(world: World, group_id: str) -> str:
    return str(world.quietly("DescribeGroups", 5, groups=[group_id])["groups"][0]["group_state"])


def static_members(world: World) -> None:
    coordinator(world)
    for version in (5, 7, 9):
        name = group(world, f"v{version}")
        first = join(world, version, "join", name, group_instance_id="i")["member_id"]
        sync(world, 5, "sync", name, first, group_instance_id="i", assignments=assigned(first))
        second = join(world, version, "restart", name, group_instance_id="i")["member_id"]
        describe(world, "restarted", name)
        sync(world, 5, "of the new", name, second, group_instance_id="i")
        sync(world, 5, "of the old", name, first, group_instance_id="i")
        heartbeat(world, name, first, group_instance_id="i")
        heartbeat(world, name, second, group_instance_id="i")
        heartbeat(world, name, second, group_instance_id="other")
        heartbeat(world, name, second)
        join(world, version, "old again", name, first, group_instance_id="i")
        join(world, version, "unknown instance", name, second, group_instance_id="other")
        leave(world, 5, "fenced", name, first, group_instance_id="i")
        leave(world, 5, "unknown instance", name, "", group_instance_id="other")
        leave(world, 5, "by instance", name, "", group_instance_id="i")
        describe(world, "left", name)


def administration(world: World) -> None:
    coordinator(world)
    topic, other = world.topic("t", partitions=2), world.topic("other")
    simple, busy = group(world, "simple"), group(world, "busy")
    commit(world, 5, "simple", simple, committing(topic, 1), committing(topic, 2, 1), committing(other, 3))
    protocols = [{"name": "range", "metadata": subscription(topic)}]
    member = enter(world, busy, protocols=protocols)
    sync(world, 5, "busy", busy, member, assignments=assigned(member))
    commit(
        world, 5, "busy", busy, committing(topic, 1), committing(other, 3),
        generation_id_or_member_epoch=1, member_id=member,
    )  # fmt: skip
    for note, group_id in (("simple", simple), ("busy", busy), ("nobody", f"{world.name}-no"), ("no group", "")):
        cuts = [
            {"name": topic.name, "partitions": [{"partition_index": 1}, {"partition_index": 9}]},
            {"name": other.name, "partitions": [{"partition_index": 0}]},
            {"name": NOWHERE.name, "partitions": [{"partition_index": 0}]},
        ]
        world.ask("OffsetDelete", 0, note, group_id=group_id, topics=cuts)
        if group_id:
            fetch(world, 7, f"left of {note}", group_id)
    for version in versions("DeleteGroups"):
        world.ask("DeleteGroups", version, groups_names=[busy, f"{world.name}-no", *([simple] if version == 2 else [])])
    world.ask("DeleteGroups", 2, "nothing", groups_names=[])
    fetch(world, 7, "after deletion", simple)
    describe(world, "after deletion", simple)


def lists(world: World) -> None:
    """Only our own groups: others come and go."""
    coordinator(world)
    topic = world.topic("t")
    simple, busy = group(world, "simple"), group(world, "busy")
    commit(world, 5, "simple", simple, committing(topic, 1))
    enter(world, busy, protocol_type="connect")
    for version in versions("ListGroups"):
        filters: list[dict[str, Any]] = [{}]
        if version >= 4:
            filters += [{"states_filter": states} for states in (["Empty"], ["completingrebalance", "Dead"], ["?"])]
        if version >= 5:
            filters += [{"types_filter": types} for types in (["classic"], ["Consumer"])]
        for chosen in filters:
            answer = world.quietly("ListGroups", version, **chosen)
            ours = [each for each in answer["groups"] if each["group_id"] in (simple, busy)]
            world.note(f"ListGroups v{version} {chosen}", {**answer, "groups": ours})


SCENARIOS = (
    finding,
    committed_offsets,
    a_lone_member,
    mistakes,
    two_members,
    static_members,
    administration,
    lists,
)
