"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources."""

from __future__ import annotations

from typing import Any

from tests.differential.scenarios.produce import NOWHERE
from tests.differential.schema import Fields, versions
from tests.differential.world import World

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
NODE = "1"
# Broker settings with one value on both sides: defaults, and some of the dynamic ones that scenarios change.
BROKER_KEYS = (
    "num.partitions",
    "default.replication.factor",
    "auto.create.topics.enable",
    "message.max.bytes",
    "log.retention.ms",
    "log.retention.bytes",
    "log.segment.bytes",
    "log.roll.ms",
    "log.cleanup.policy",
    "compression.type",
    "min.insync.replicas",
    "log.flush.interval.messages",
    "log.index.interval.bytes",
    "log.message.timestamp.type",
    "delete.topic.enable",
    "max.connections.per.ip",
    "socket.request.max.bytes",
    "log.retention.hours",
    "log.retention.check.interval.ms",
)


def resource(kind: int, name: str, keys: list[str] | None = None) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, "configuration_keys": keys}


def describe(world: World, version: int, note: str, *resources: dict[str, Any], **more: Any) -> Fields:
    """Documentation is told apart as there or not: the words are each broker's own."""
    answer: Fields = world.quietly("DescribeConfigs", version, resources=list(resources), **more)
    for result in answer["results"]:
        for config in result["configs"]:
            if "documentation" in config:
                config["documentation"] = bool(config["documentation"])
    world.note(f"DescribeConfigs v{version} {note}", answer)
    return answer


def until_config(world: World, kind: int, name: str, key: str, value: str | None) -> None:
    def reached() -> bool:
        answer = world.quietly("DescribeConfigs", 4, resources=[resource(kind, name, [key])])
        found = answer["results"][0]["configs"]
        return bool(found) and found[0]["value"] == value

    world.until(reached, f"{key} of {name} to be {value}")


def topics_described(world: World) -> None:
    topic = world.topic("t", configs={"retention.ms": "1234567", "cleanup.policy": "compact", "segment.ms": "9999"})
    for version in versions("DescribeConfigs"):
        describe(world, version, "all", resource(TOPIC, topic.name))
        describe(world, version, "synonyms", resource(TOPIC, topic.name), include_synonyms=True)
        describe(world, version, "some", resource(TOPIC, topic.name, ["retention.ms", "no.such", "segment.bytes"]))
        describe(world, version, "empty list of keys", resource(TOPIC, topic.name, []))
    describe(world, 4, "documentation", resource(TOPIC, topic.name), include_documentation=True)


def unknown_resources(world: World) -> None:
    topic = world.topic("t")
    for version in (1, 4):
        for name in (NOWHERE.name, "", "a/b", ".."):
            describe(world, version, f"topic {name!r}", resource(TOPIC, name))
        for kind in (0, 1, 3, 64, 127, -1):
            describe(world, version, f"type {kind}", resource(kind, "x"))
        for name in ("7", "x", "-1"):
            describe(world, version, f"broker {name}", resource(BROKER, name))
        describe(
            world,
            version,
            "twice",
            resource(TOPIC, topic.name, ["retention.ms"]),
            resource(TOPIC, topic.name, ["segment.ms"]),
        )
        describe(world, version, "nothing")


def brokers_described(world: World) -> None:
    for version in versions("DescribeConfigs"):
        describe(world, version, "broker", resource(BROKER, NODE, list(BROKER_KEYS)), include_synonyms=True)
    describe(world, 4, "cluster default", resource(BROKER, ""))


def listed_in_order(world: World) -> None:
    """Clients see the order of the entries, and tests that they ship for themselves look at the first ones."""
    topic = world.topic("t", configs={"retention.ms": "1234567", "cleanup.policy": "compact"})
    for kind, name in ((TOPIC, topic.name), (BROKER, NODE), (BROKER, ""), (GROUP, "some-group")):
        answer = world.quietly("DescribeConfigs", 4, resources=[resource(kind, name)])
        names = [config["name"] for config in answer["results"][0]["configs"]]
        world.note(f"DescribeConfigs v4 order of type {kind} {'' if kind == TOPIC else name}", {"names": names})


def settings(**configs: str | None) -> list[dict[str, Any]]:
    return [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]


def alter(
    world: World, version: int, note: str, kind: int, name: str, configs: list[dict[str, Any]], **more: Any
) -> None:
    one = {"resource_type": kind, "resource_name": name, "configs": configs}
    world.ask("AlterConfigs", version, note, **{"resources": [one], "validate_only": False} | more)


def topics_altered(world: World) -> None:
    """The older request replaces: what it does not name returns to the default."""
    for version in versions("AlterConfigs"):
        topic = world.topic(f"v{version}", configs={"segment.ms": "9999"})
        alter(world, version, "validated", TOPIC, topic.name, settings(retention_ms="5000"), validate_only=True)
        describe(world, 4, "unchanged", resource(TOPIC, topic.name, ["retention.ms", "segment.ms"]))
        alter(world, version, "replaced", TOPIC, topic.name, settings(retention_ms="5000"))
        until_config(world, TOPIC, topic.name, "retention.ms", "5000")
        describe(world, 4, "replaced", resource(TOPIC, topic.name), include_synonyms=True)
        alter(world, version, "nothing", TOPIC, topic.name, [])
        until_config(world, TOPIC, topic.name, "retention.ms", "604800000")


BAD_SETTINGS: dict[str, list[dict[str, Any]]] = {
    "unknown": settings(no_such="1"),
    "not a number": settings(retention_ms="soon"),
    "null": settings(retention_ms=None),
    "empty": settings(retention_ms=""),
    "out of range": settings(segment_bytes="1"),
    "bad policy": settings(cleanup_policy="x"),
    "twice": settings(retention_ms="1") * 2,
    "too many in sync": settings(min_insync_replicas="9"),
    "empty name": [{"name": "", "value": "1"}],
}


def altered_badly(world: World) -> None:
    topic = world.topic("t")
    for version in (0, 2):
        for what, configs in BAD_SETTINGS.items():
            alter(world, version, what, TOPIC, topic.name, configs)
        alter(world, version, "unknown topic", TOPIC, NOWHERE.name, settings(retention_ms="1"))
        alter(world, version, "invalid topic", TOPIC, "a/b", settings(retention_ms="1"))
        for kind in (0, 1, 3, 127):
            alter(world, version, f"type {kind}", kind, "x", settings(retention_ms="1"))
        alter(world, version, "unknown broker", BROKER, "7", settings(message_max_bytes="1000"))
        alter(world, version, "broker not a number", BROKER, "x", settings(message_max_bytes="1000"))
        world.ask("AlterConfigs", version, "no resources", resources=[], validate_only=False)


def increments(*changes: tuple[str, int, str | None]) -> list[dict[str, Any]]:
    return [{"name": name, "config_operation": operation, "value": value} for name, operation, value in changes]


def increment(
    world: World, version: int, note: str, kind: int, name: str, configs: list[dict[str, Any]], **more: Any
) -> None:
    one = {"resource_type": kind, "resource_name": name, "configs": configs}
    world.ask("IncrementalAlterConfigs", version, note, **{"resources": [one], "validate_only": False} | more)


def topics_incremented(world: World) -> None:
    for version in versions("IncrementalAlterConfigs"):
        topic = world.topic(f"v{version}", configs={"segment.ms": "9999"})
        steps: tuple[tuple[str, str, list[dict[str, Any]], str], ...] = (
            ("set", "retention.ms", increments(("retention.ms", SET, "5000")), "5000"),
            ("set again", "retention.ms", increments(("retention.ms", SET, "6000")), "6000"),
            ("append", "cleanup.policy", increments(("cleanup.policy", APPEND, "compact")), "delete,compact"),
            (
                "append what is there",
                "cleanup.policy",
                increments(("cleanup.policy", APPEND, "compact")),
                "delete,compact",
            ),
            ("subtract", "cleanup.policy", increments(("cleanup.policy", SUBTRACT, "delete")), "compact"),
            (
                "subtract what is not there",
                "cleanup.policy",
                increments(("cleanup.policy", SUBTRACT, "delete")),
                "compact",
            ),
            ("delete", "retention.ms", increments(("retention.ms", DELETE, None)), "604800000"),
            ("delete again", "retention.ms", increments(("retention.ms", DELETE, None)), "604800000"),
            (
                "several",
                "max.message.bytes",
                increments(("segment.ms", DELETE, ""), ("max.message.bytes", SET, "99")),
                "99",
            ),
        )
        for what, key, changes, reached in steps:
            increment(world, version, what, TOPIC, topic.name, changes)
            until_config(world, TOPIC, topic.name, key, reached)
            keys = ["retention.ms", "cleanup.policy", "segment.ms", "max.message.bytes"]
            describe(world, 4, what, resource(TOPIC, topic.name, keys), include_synonyms=True)


def incremented_badly(world: World) -> None:
    topic = world.topic("t")
    cases: dict[str, list[dict[str, Any]]] = {
        "unknown": increments(("no.such", SET, "1")),
        "not a number": increments(("retention.ms", SET, "soon")),
        "null": increments(("retention.ms", SET, None)),
        "append to a number": increments(("retention.ms", APPEND, "1")),
        "subtract from a number": increments(("retention.ms", SUBTRACT, "1")),
        "twice": increments(("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
        "set and delete": increments(("retention.ms", SET, "1"), ("retention.ms", DELETE, None)),
        "append nonsense": increments(("cleanup.policy", APPEND, "shred")),
        "subtract all": increments(("cleanup.policy", SUBTRACT, "delete")),
        "append null": increments(("cleanup.policy", APPEND, None)),
        "delete unknown": increments(("no.such", DELETE, None)),
        "empty name": increments(("", SET, "1")),
        "no changes": [],
    }
    for version in (0, 1):
        for what, changes in cases.items():
            increment(world, version, what, TOPIC, topic.name, changes, validate_only=True)
        increment(world, version, "unknown topic", TOPIC, NOWHERE.name, increments(("retention.ms", SET, "1")))
        for kind in (0, 1, 3, 127):
            increment(world, version, f"type {kind}", kind, "x", increments(("retention.ms", SET, "1")))
        world.ask("IncrementalAlterConfigs", version, "no resources", resources=[], validate_only=False)
        pair = [
            {"resource_type": TOPIC, "resource_name": topic.name, "configs": increments(("retention.ms", SET, "7"))}
        ] * 2
        world.ask("IncrementalAlterConfigs", version, "resource twice", resources=pair, validate_only=True)


def unknown_operations(world: World) -> None:
    topic = world.topic("t")
    for operation in (4, -1):
        increment(world, 1, f"operation {operation}", TOPIC, topic.name, increments(("retention.ms", operation, "1")))


def brokers_altered(world: World) -> None:
    """Dynamic settings: the broker's own goes before the cluster's, that before the default; then all is put back."""
    key, topic = "log.retention.ms", world.topic("t")
    seen = (resource(BROKER, NODE, [key]), resource(BROKER, "", [key]), resource(TOPIC, topic.name, ["retention.ms"]))
    steps: tuple[tuple[str, str | None, str | None], ...] = (
        ("", "777777777", "777777777"),
        (NODE, "888888888", "888888888"),
        ("", None, "888888888"),
        (NODE, None, None),
    )
    for name, value, reached in steps:
        operation = DELETE if value is None else SET
        increment(world, 1, f"broker {name!r} {value}", BROKER, name, increments((key, operation, value)))
        until_config(world, BROKER, NODE, key, reached)
        if name == "" and value is None:
            world.until(
                lambda: not world.quietly("DescribeConfigs", 4, resources=[seen[1]])["results"][0]["configs"],
                "default gone",
            )
        for version in (1, 4):
            describe(world, version, f"after {name!r} {value}", *seen, include_synonyms=True)


def listeners_altered(world: World) -> None:
    """A limit of one listener, which has the broker's name of it behind the listener's."""
    key = "listener.name.plaintext.max.connections"
    seen = resource(BROKER, NODE, [key, "max.connections"])
    for name, value in ((NODE, "100000"), ("", "90000")):
        increment(world, 1, f"broker {name!r} {value}", BROKER, name, increments((key, SET, value)))
        until_config(world, BROKER, name, key, value)
        describe(world, 4, f"after {name!r} {value}", seen, resource(BROKER, "", [key]), include_synonyms=True)
    for what, bad in {"not a number": "many", "negative": "-1"}.items():
        increment(world, 1, what, BROKER, NODE, increments((key, SET, bad)), validate_only=True)
    for name in (NODE, ""):
        increment(world, 1, f"broker {name!r} put back", BROKER, name, increments((key, DELETE, None)))
    for name in (NODE, ""):
        until_gone(world, name, key)


def until_gone(world: World, name: str, key: str) -> None:
    wanted = [resource(BROKER, name, [key])]
    world.until(lambda: not world.quietly("DescribeConfigs", 4, resources=wanted)["results"][0]["configs"], "key gone")


def brokers_altered_badly(world: World) -> None:
    cases: dict[str, tuple[str, list[dict[str, Any]]]] = {
        "read only": (NODE, increments(("broker.id", SET, "9"))),
        "read only default": ("", increments(("log.dirs", SET, "/x"))),
        "unknown": (NODE, increments(("no.such", SET, "9"))),
        "not a number": (NODE, increments(("log.retention.ms", SET, "x"))),
        "out of range": ("", increments(("log.segment.bytes", SET, "1"))),
        "other broker": ("9", increments(("log.retention.ms", SET, "1"))),
        "no number": ("x", increments(("log.retention.ms", SET, "1"))),
        "append to a list": (NODE, increments(("log.cleanup.policy", APPEND, "compact"))),
        "topic's name for it": (NODE, increments(("retention.ms", SET, "1"))),
    }
    for what, (name, changes) in cases.items():
        increment(world, 1, what, BROKER, name, changes, validate_only=True)


CHANGES: dict[str, tuple[str, ...]] = {
    "background.threads": ("0", "4", "5", "20", "21", "2147483648"),
    "cordoned.log.dirs": ("",),
    "log.cleaner.dedupe.buffer.size": ("-1", "1048576", "1048577"),
    "log.cleaner.threads": ("-1", "0", "1", "2", "3"),
    "log.local.retention.bytes": ("-3", "-2", "-1", "9223372036854775807"),
    "log.local.retention.ms": ("-3", "-2", "-1", "604800000", "604800001"),
    "max.connection.creation.rate": ("-1", "0", "1"),
    "max.connections": ("-1", "0", "1"),
    "listener.name.plaintext.max.connections": ("0", "1"),
    "num.io.threads": ("0", "3", "4", "16", "17"),
    "num.network.threads": ("0", "1", "6", "7"),
    "num.recovery.threads.per.data.dir": ("0", "1", "4", "5"),
    "num.replica.fetchers": ("0", "1", "2", "3"),
    "remote.log.manager.copier.thread.pool.size": ("-1", "0", "4", "5", "20", "21"),
    "remote.log.manager.expiration.thread.pool.size": ("-1", "0", "4", "5", "20", "21"),
    "remote.log.manager.follower.thread.pool.size": ("-1", "0", "1", "4", "5"),
    "remote.log.reader.threads": ("0", "4", "5", "20", "21"),
}


def brokers_changed_within_bounds(world: World) -> None:
    """What a start accepts and a change while the broker runs does not: most of all, another number of threads."""
    for key, values in CHANGES.items():
        for value in values:
            for name in (NODE, ""):
                what = f"{key}={value} of {name!r}"
                increment(world, 1, what, BROKER, name, increments((key, SET, value)), validate_only=True)


def resources_listed(world: World) -> None:
    topic = world.topic("t")
    for version, kinds in (
        (0, [()]),
        (1, [(), (TOPIC,), (BROKER,), (TOPIC, BROKER), (GROUP,), (CLIENT_METRICS,), (9,), (BROKER_LOGGER,)]),
    ):
        for wanted in kinds:
            answer = world.quietly("ListConfigResources", version, resource_types=list(wanted))
            mine = [
                one
                for one in answer["config_resources"]
                if one.get("resource_type") != TOPIC or one["resource_name"] == topic.name
            ]
            mine.sort(key=lambda one: (one.get("resource_type", 0), one["resource_name"]))
            world.note(f"ListConfigResources v{version} {wanted}", answer | {"config_resources": mine})


SCENARIOS = (
    topics_described,
    unknown_resources,
    brokers_described,
    listed_in_order,
    topics_altered,
    altered_badly,
    topics_incremented,
    incremented_badly,
    unknown_operations,
    brokers_altered,
    listeners_altered,
    brokers_altered_badly,
    brokers_changed_within_bounds,
    resources_listed,
)
