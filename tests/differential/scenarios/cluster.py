"""ApiVersions, Metadata, FindCoordinator and the Describe requests about the cluster itself."""

from __future__ import annotations

import struct
from typing import Any

from tests.differential.peer import CLOSED, SILENT
from tests.differential.scenarios.fetch import filled
from tests.differential.scenarios.produce import NOWHERE
from tests.differential.schema import Fields, api_key, decode, versions
from tests.differential.world import Topic, World

# The APIs that the broker's first stage promises: their advertised ranges are compared, others come later.
PROMISED = (
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "ApiVersions",
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "DeleteRecords",
    "DescribeConfigs",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "DescribeCluster",
    "DescribeLogDirs",
    "DescribeTopicPartitions",
    "ListConfigResources",
    "InitProducerId",
    "OffsetForLeaderEpoch",
    "DescribeProducers",
    "FindCoordinator",
)


def promised(answer: Any) -> Any:
    """An ApiVersions answer cut down to the promised APIs; features belong to what comes later."""
    if not isinstance(answer, dict):
        return answer
    keys = {api_key(api) for api in PROMISED}
    kept: Fields = {name: value for name, value in answer.items() if "feature" not in name}
    return kept | {"api_keys": [one for one in answer["api_keys"] if one["api_key"] in keys]}


def advertised(world: World) -> None:
    named = {"client_software_name": "differential", "client_software_version": "1.0"}
    for version in versions("ApiVersions"):
        world.note(f"ApiVersions v{version}", promised(world.quietly("ApiVersions", version, **named)))


def software_names(world: World) -> None:
    for name, release in (
        ("", ""),
        ("-x", "1"),
        ("x-", "1"),
        ("a b", "1"),
        ("x", "1 2"),
        ("ok-1.a", "v1.2-x"),
        ("é", "1"),
        ("x" * 300, "1"),
    ):
        for version in (3, 4):
            answer = world.quietly("ApiVersions", version, client_software_name=name, client_software_version=release)
            world.note(f"{name[:9]!r} {release!r} v{version}", promised(answer))


def versions_too_new(world: World) -> None:
    """ApiVersions is answered in its oldest form; any other API of an unknown version closes the connection."""
    for version in (5, 99, 32767, -1):
        peer = world.extra_peer()
        peer.send_frame(struct.pack(">hhih", 18, version, 1, -1) + b"\0\0\0\0")
        frame = peer.receive()
        answer = decode("ApiVersionsResponse", 0, frame[4:]) if isinstance(frame, bytes) else frame
        world.note(f"ApiVersions v{version}", promised(answer))
    for api in PROMISED:
        if api == "ApiVersions":
            continue
        for version in (versions(api).start - 1, versions(api).stop, 99):
            peer = world.extra_peer()
            peer.send_frame(struct.pack(">hhih", api_key(api), version, 1, -1) + bytes(64))
            frame = peer.receive(1.0)
            world.note(f"{api} v{version}", frame if frame in (CLOSED, SILENT) else "answered")


def unknown_apis(world: World) -> None:
    for key in (-1, 93, 999, 32767):
        peer = world.extra_peer()
        peer.send_frame(struct.pack(">hhih", key, 0, 1, -1) + bytes(16))
        world.note(f"key {key}", peer.receive(1.0))


def metadata(world: World, version: int, note: str, topics: list[dict[str, Any]] | None, **more: Any) -> Any:
    return world.ask("Metadata", version, note, topics=topics, **{"allow_auto_topic_creation": False} | more)


def named(*names: str | None, ids: tuple[bytes, ...] = ()) -> list[dict[str, Any]]:
    return [{"name": name} for name in names] + [{"name": None, "topic_id": one} for one in ids]


def known_topics(world: World) -> None:
    topic, other = world.topic("t", partitions=3), world.topic("other")
    for version in versions("Metadata"):
        metadata(world, version, "one", named(topic.name))
        metadata(world, version, "two", named(topic.name, other.name))
        metadata(world, version, "twice", named(topic.name, topic.name))
        if version >= 1:
            metadata(world, version, "none", [])
        operations = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
        metadata(world, version, "with operations", named(topic.name), **operations)


def all_topics(world: World) -> None:
    """An empty list asks for all at version 0, null from version 1; other scenarios' topics are left out."""
    topic = world.topic("t", partitions=2)
    for version in versions("Metadata"):
        answer = world.quietly(
            "Metadata", version, topics=[] if version == 0 else None, allow_auto_topic_creation=False
        )
        answer["topics"] = [one for one in answer["topics"] if one["name"] == topic.name]
        world.note(f"v{version}", answer)


def unknown_topics(world: World) -> None:
    topic = world.topic("t")
    for version in versions("Metadata"):
        if version >= 4:
            metadata(world, version, "unknown", named(NOWHERE.name))
        for name in ("", ".", "..", "a/b", "a b", "é", "x" * 250):
            metadata(world, version, f"invalid {name[:9]!r}", named(name), allow_auto_topic_creation=True)
        if version >= 4:
            metadata(world, version, "unknown beside known", named(NOWHERE.name, topic.name))


def by_id(world: World) -> None:
    topic = world.topic("t")
    for version in (10, 11, 12, 13):
        metadata(world, version, "id", named(ids=(topic.id,)))
        metadata(world, version, "unknown id", named(ids=(NOWHERE.id,)))
        metadata(world, version, "zero id", named(ids=(bytes(16),)))
        metadata(world, version, "id and name", [{"name": topic.name, "topic_id": topic.id}])
        metadata(world, version, "id and another name", [{"name": NOWHERE.name, "topic_id": topic.id}])
        metadata(world, version, "id beside a name", named(topic.name, ids=(topic.id,)))
        metadata(world, version, "null name", named(None))


def created_by_asking(world: World) -> None:
    for version in versions("Metadata"):
        fresh = f"{world.name}-auto-{version}"
        metadata(world, version, "first", named(fresh), allow_auto_topic_creation=True)
        if version >= 1:
            world.until_ready(fresh, 1)
            metadata(world, version, "then", named(fresh), allow_auto_topic_creation=True)
    metadata(world, 12, "not wished", named(f"{world.name}-never"), allow_auto_topic_creation=False)


def coordinators(world: World) -> None:
    """What a broker refuses before it looks for a coordinator."""
    for version in versions("FindCoordinator"):
        for kind in (2, 9, -1) if version >= 1 else ():
            world.ask("FindCoordinator", version, f"type {kind}", key="g", coordinator_keys=["g"], key_type=kind)
        if version >= 4:
            world.ask("FindCoordinator", version, "no keys", coordinator_keys=[], key_type=0)


def the_cluster(world: World) -> None:
    for version in versions("DescribeCluster"):
        for kind in (1, 2, 0, 9) if version else (1,):
            answer = world.quietly(
                "DescribeCluster", version, endpoint_type=kind, include_cluster_authorized_operations=True
            )
            world.note(f"v{version} endpoints {kind}", answer)
        world.ask("DescribeCluster", version, "plain", endpoint_type=1)


def log_directories(world: World) -> None:
    topic, other = filled(world), world.topic("other", partitions=2)
    for version in versions("DescribeLogDirs"):
        for what, wanted in {
            "known": [(topic, [0])],
            "two": [(topic, [0]), (other, [0, 1])],
            "unknown partition": [(topic, [0, 9])],
            "unknown topic": [(NOWHERE, [0])],
            "nothing": [],
        }.items():
            log_dirs(world, version, what, wanted)


def log_dirs(world: World, version: int, what: str, wanted: list[tuple[Topic, list[int]]]) -> None:
    topics = [{"topic": topic.name, "partitions": partitions} for topic, partitions in wanted]
    answer = world.quietly("DescribeLogDirs", version, topics=topics)
    for directory in answer["results"]:
        assert directory["log_dir"].startswith("/")
        directory["log_dir"] = "a folder"
        for size in ("total_bytes", "usable_bytes"):
            directory[size] = directory.get(size, 0) > 0
    world.note(f"DescribeLogDirs v{version} {what}", answer)


def topic_partitions(world: World) -> None:
    topics = sorted([world.topic("a", partitions=3), world.topic("b", partitions=2)], key=lambda one: one.name)
    both = [{"name": topic.name} for topic in topics]
    cases: dict[str, Fields] = {
        "both": {"topics": both},
        "reversed": {"topics": both[::-1]},
        "two at a time": {"topics": both, "response_partition_limit": 2},
        "no limit": {"topics": both, "response_partition_limit": 0},
        "negative limit": {"topics": both, "response_partition_limit": -1},
        "from a cursor": {"topics": both, "cursor": {"topic_name": topics[0].name, "partition_index": 2}},
        "cursor behind": {"topics": both, "cursor": {"topic_name": topics[1].name, "partition_index": 9}},
        "cursor on an unknown topic": {"topics": both, "cursor": {"topic_name": "zzz", "partition_index": 0}},
        "cursor before": {"topics": both, "cursor": {"topic_name": "0", "partition_index": 0}},
        "cursor negative": {"topics": both, "cursor": {"topic_name": topics[0].name, "partition_index": -1}},
        "unknown": {"topics": [{"name": NOWHERE.name}, *both]},
        "invalid": {"topics": [{"name": "a/b"}]},
        "empty name": {"topics": [{"name": ""}]},
        "twice": {"topics": [both[0], both[0]]},
    }
    for what, fields in cases.items():
        world.ask("DescribeTopicPartitions", 0, what, **fields)


SCENARIOS = (
    advertised,
    software_names,
    versions_too_new,
    unknown_apis,
    known_topics,
    all_topics,
    unknown_topics,
    by_id,
    created_by_asking,
    coordinators,
    the_cluster,
    log_directories,
    topic_partitions,
)
