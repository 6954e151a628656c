"""CreateTopics, DeleteTopics and CreatePartitions, with every kind of bad input."""

from __future__ import annotations

from typing import Any

from tests.differential.scenarios.produce import NOWHERE
from tests.differential.schema import versions
from tests.differential.world import World


def create(world: World, version: int, note: str, *topics: dict[str, Any], **more: Any) -> Any:
    listed = [{"num_partitions": 1, "replication_factor": 1} | topic for topic in topics]
    return world.ask("CreateTopics", version, note, **{"topics": listed, "timeout_ms": 15_000} | more)


def gone(world: World, *names: str) -> None:
    world.ask("DeleteTopics", 5, "clean up", topic_names=list(names), timeout_ms=15_000)


def every_version_creates(world: World) -> None:
    for version in versions("CreateTopics"):
        create(world, version, "one", {"name": f"{world.name}-{version}"})
        create(world, version, "again", {"name": f"{world.name}-{version}"})
        create(
            world,
            version,
            "defaults",
            {"name": f"{world.name}-d{version}", "num_partitions": -1, "replication_factor": -1},
        )
        world.ask("Metadata", 12, topics=[{"name": f"{world.name}-{version}"}])


def only_validated(world: World) -> None:
    for version in versions("CreateTopics"):
        create(world, version, "good", {"name": f"{world.name}-{version}"}, validate_only=True)
        create(world, version, "bad", {"name": "a/b"}, validate_only=True)
        world.ask("Metadata", 12, topics=[{"name": f"{world.name}-{version}"}], allow_auto_topic_creation=False)


def bad_names(world: World) -> None:
    names = (
        "",
        ".",
        "..",
        "a/b",
        "a b",
        "a\\b",
        "a\0b",
        "é",
        "x" * 249,
        "x" * 250,
        "__consumer_offsets_x",
        "a:b",
        "a,b",
    )
    for version in (2, 5, 7):
        for name in names:
            create(world, version, repr(name[:9]), {"name": name}, validate_only=True)


def clashing_names(world: World) -> None:
    base = world.name.replace("-", ".")
    create(world, 7, "dots", {"name": base + ".x.y"})
    create(world, 7, "underscores instead", {"name": base + "_x.y"})
    create(world, 7, "all underscores", {"name": (base + ".x.y").replace(".", "_")})
    create(world, 7, "two that clash", {"name": base + ".p.q"}, {"name": base + ".p_q"})


def bad_numbers(world: World) -> None:
    cases = {
        "no partitions": {"num_partitions": 0},
        "negative partitions": {"num_partitions": -2},
        "no replicas": {"replication_factor": 0},
        "negative replicas": {"replication_factor": -2},
        "two replicas": {"replication_factor": 2},
        "many replicas": {"replication_factor": 32767},
        "too many partitions": {"num_partitions": 10_001},
    }
    for version in (2, 4, 5, 7):
        for what, fields in cases.items():
            create(world, version, what, {"name": f"{world.name}-x"} | fields, validate_only=True)


def several_at_once(world: World) -> None:
    for version in (2, 7):
        name = f"{world.name}-{version}"
        create(world, version, "twice in one request", {"name": name}, {"name": name})
        create(world, version, "twice and another", {"name": name}, {"name": name}, {"name": name + "-other"})
        create(
            world,
            version,
            "good beside bad",
            {"name": name + "-good"},
            {"name": "a/b"},
            {"name": name, "num_partitions": 0},
        )
        create(world, version, "none")


def assignment(*replicas: tuple[int, list[int]]) -> list[dict[str, Any]]:
    return [{"partition_index": index, "broker_ids": brokers} for index, brokers in replicas]


def explicit_assignments(world: World) -> None:
    free = {"num_partitions": -1, "replication_factor": -1}
    cases: dict[str, dict[str, Any]] = {
        "good": free | {"assignments": assignment((0, [1]), (1, [1]))},
        "with numbers too": {
            "num_partitions": 2,
            "replication_factor": 1,
            "assignments": assignment((0, [1]), (1, [1])),
        },
        "partitions too": free | {"num_partitions": 1, "assignments": assignment((0, [1]))},
        "unknown broker": free | {"assignments": assignment((0, [7]))},
        "negative broker": free | {"assignments": assignment((0, [-1]))},
        "no brokers": free | {"assignments": assignment((0, []))},
        "broker twice": free | {"assignments": assignment((0, [1, 1]))},
        "partition twice": free | {"assignments": assignment((0, [1]), (0, [1]))},
        "gap": free | {"assignments": assignment((0, [1]), (2, [1]))},
        "not from zero": free | {"assignments": assignment((1, [1]))},
        "negative partition": free | {"assignments": assignment((-1, [1]))},
        "uneven": free | {"assignments": assignment((0, [1]), (1, [1, 2]))},
    }
    for version in (2, 7):
        for what, fields in cases.items():
            create(world, version, what, {"name": f"{world.name}-{version}"} | fields, validate_only=True)
    create(world, 7, "really", {"name": f"{world.name}-real"} | cases["good"])
    world.until_ready(f"{world.name}-real", partitions=2)
    world.ask("Metadata", 12, topics=[{"name": f"{world.name}-real"}])


def created_with_configs(world: World) -> None:
    cases: dict[str, list[tuple[str, str | None]]] = {
        "good": [("retention.ms", "1000"), ("cleanup.policy", "compact")],
        "unknown": [("no.such.config", "1")],
        "empty name": [("", "1")],
        "not a number": [("retention.ms", "soon")],
        "out of range": [("segment.bytes", "1")],
        "too big": [("max.message.bytes", "99999999999")],
        "bad policy": [("cleanup.policy", "shred")],
        "two policies": [("cleanup.policy", "compact,delete")],
        "no policy": [("cleanup.policy", "")],
        "null value": [("retention.ms", None)],
        "bad boolean": [("preallocate", "perhaps")],
        "bad codec": [("compression.type", "rar")],
        "bad ratio": [("min.cleanable.dirty.ratio", "2")],
        "bad list": [("leader.replication.throttled.replicas", "x:y")],
        "good list": [("leader.replication.throttled.replicas", "0:1")],
        "too many in sync": [("min.insync.replicas", "5")],
        "none in sync": [("min.insync.replicas", "0")],
        "lags that cross": [("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")],
        "timestamp type": [("message.timestamp.type", "Yesterday")],
        "remote storage": [("remote.storage.enable", "true")],
        "local beyond total": [("local.retention.ms", "9999"), ("retention.ms", "100")],
        "same twice": [("retention.ms", "1"), ("retention.ms", "2")],
        "spaces": [("retention.ms", " 1000 ")],
    }
    for what, settings in cases.items():
        configs = [{"name": name, "value": value} for name, value in settings]
        fields = {"name": f"{world.name}-x", "configs": configs}
        for version in (2, 7):
            create(world, version, what, fields, validate_only=True)


def deleted(world: World) -> None:
    for version in versions("DeleteTopics"):
        topic = world.topic(f"v{version}")
        fields = {"topic_names": [topic.name], "topics": [{"name": topic.name}], "timeout_ms": 15_000}
        world.ask("DeleteTopics", version, "known", **fields)
        world.until_gone(topic.name)
        world.ask("DeleteTopics", version, "again", **fields)
        for name in ("", "a/b", NOWHERE.name, "x" * 300):
            world.ask(
                "DeleteTopics", version, repr(name[:9]), topic_names=[name], topics=[{"name": name}], timeout_ms=1_000
            )
        world.ask("DeleteTopics", version, "none", topic_names=[], topics=[], timeout_ms=1_000)


def deleted_by_id(world: World) -> None:
    topic, third = world.topic("a"), world.topic("c")
    cases: dict[str, list[dict[str, Any]]] = {
        "unknown id": [{"name": None, "topic_id": NOWHERE.id}],
        "zero id": [{"name": None}],
        "name and id": [{"name": topic.name, "topic_id": topic.id}],
        "id twice": [{"name": None, "topic_id": topic.id}] * 2,
        "name twice": [{"name": topic.name}] * 2,
        "id": [{"name": None, "topic_id": third.id}],
    }
    for what, topics in cases.items():
        answer = world.quietly("DeleteTopics", 6, topics=topics, timeout_ms=5_000)
        answer["responses"].sort(key=lambda one: (one["name"] or "", one["error_code"]))
        world.note(what, answer)
    world.until_gone(third.name)
    world.ask("Metadata", 12, topics=[{"name": topic.name}])


def partitions_grow(world: World) -> None:
    for version in versions("CreatePartitions"):
        topic = world.topic(f"v{version}", partitions=2)
        for count in (3, 3, 2, 1, 0, -1):
            wanted = {"name": topic.name, "count": count, "assignments": None}
            world.ask("CreatePartitions", version, f"to {count}", topics=[wanted], timeout_ms=15_000)
        world.until_ready(topic.name, 3)
        world.ask("Metadata", 12, topics=[{"name": topic.name}])
        lost = {"name": NOWHERE.name, "count": 3, "assignments": None}
        world.ask("CreatePartitions", version, "unknown topic", topics=[lost], timeout_ms=5_000)
        world.ask("CreatePartitions", version, "invalid name", topics=[lost | {"name": "a/b"}], timeout_ms=5_000)
        world.ask(
            "CreatePartitions",
            version,
            "too many",
            topics=[{"name": topic.name, "count": 10_010, "assignments": None}],
            timeout_ms=5_000,
            validate_only=True,
        )
        world.ask("CreatePartitions", version, "none", topics=[], timeout_ms=5_000)
        twice = [{"name": topic.name, "count": 5, "assignments": None}] * 2
        world.ask("CreatePartitions", version, "twice", topics=twice, timeout_ms=5_000)
        world.ask("CreatePartitions", version, "validated", topics=twice[:1], timeout_ms=5_000, validate_only=True)


def partitions_assigned(world: World) -> None:
    topic = world.topic("t")
    cases: dict[str, list[list[int]]] = {
        "one each": [[1], [1]],
        "too few": [[1]],
        "too many": [[1], [1], [1]],
        "unknown broker": [[1], [8]],
        "no brokers": [[1], []],
        "broker twice": [[1], [1, 1]],
        "none": [],
        "negative": [[1], [-1]],
    }
    for version in (0, 3):
        for what, brokers in cases.items():
            wanted = {"name": topic.name, "count": 3, "assignments": [{"broker_ids": one} for one in brokers]}
            world.ask("CreatePartitions", version, what, topics=[wanted], timeout_ms=5_000, validate_only=True)


SCENARIOS = (
    every_version_creates,
    only_validated,
    bad_names,
    clashing_names,
    bad_numbers,
    several_at_once,
    explicit_assignments,
    created_with_configs,
    deleted,
    deleted_by_id,
    partitions_grow,
    partitions_assigned,
)
