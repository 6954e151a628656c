"""Configurations of groups: described, changed, refused and listed."""

from __future__ import annotations

from typing import Any

from tests.differential.scenarios.configs import (
    APPEND,
    DELETE,
    GROUP,
    NODE,
    SET,
    SUBTRACT,
    TOPIC,
    describe,
    resource,
    until_config,
)
from tests.differential.scenarios.consumer_groups import beat, join, new_group
from tests.differential.scenarios.groups import coordinator
from tests.differential.schema import versions
from tests.differential.world import World

HEARTBEAT, SESSION = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"
BROKER_KEYS = ["group.consumer.session.timeout.ms", "group.consumer.migration.policy", "group.consumer.assignors"]


def change(world: World, note: str, name: str, *changes: tuple[str, str | None, int], **more: Any) -> None:
    configs = [{"name": key, "value": value, "config_operation": operation} for key, value, operation in changes]
    wanted = {"resource_type": GROUP, "resource_name": name, "configs": configs}
    world.ask("IncrementalAlterConfigs", 1, note, resources=[wanted], **more)


def groups_described(world: World) -> None:
    group = f"{world.name}-g"
    for version in versions("DescribeConfigs"):
        describe(world, version, "nothing set", resource(GROUP, group))
        describe(world, version, "no name", resource(GROUP, ""))
    change(
        world,
        "both",
        group,
        (HEARTBEAT, "7000", SET),
        (SESSION, "50000", SET),
        ("share.isolation.level", "read_committed", SET),
    )
    until_config(world, GROUP, group, HEARTBEAT, "7000")
    for version in versions("DescribeConfigs"):
        describe(world, version, "all", resource(GROUP, group))
        describe(world, version, "synonyms", resource(GROUP, group), include_synonyms=True)
        describe(world, version, "some", resource(GROUP, group, [SESSION, "no.such"]))
    describe(world, 4, "documentation", resource(GROUP, group), include_documentation=True)


def groups_changed(world: World) -> None:
    group = f"{world.name}-g"
    change(world, "set", group, (HEARTBEAT, "6000", SET))
    until_config(world, GROUP, group, HEARTBEAT, "6000")
    change(world, "another", group, (SESSION, "46000", SET))
    until_config(world, GROUP, group, SESSION, "46000")
    describe(world, 4, "both stay", resource(GROUP, group, [HEARTBEAT, SESSION]))
    change(world, "delete", group, (HEARTBEAT, None, DELETE))
    until_config(world, GROUP, group, HEARTBEAT, "5000")
    change(world, "delete what is not set", group, (HEARTBEAT, None, DELETE))
    whole = {"resource_type": GROUP, "resource_name": group, "configs": [{"name": HEARTBEAT, "value": "8000"}]}
    for version in versions("AlterConfigs"):
        world.ask("AlterConfigs", version, "whole", resources=[whole])
    until_config(world, GROUP, group, HEARTBEAT, "8000")
    until_config(world, GROUP, group, SESSION, "45000")
    describe(world, 4, "replaced", resource(GROUP, group, [HEARTBEAT, SESSION]))
    change(world, "only validated", group, (HEARTBEAT, "9000", SET), validate_only=True)
    change(world, "validated and wrong", group, (HEARTBEAT, "9", SET), validate_only=True)
    describe(world, 4, "as before", resource(GROUP, group, [HEARTBEAT]))


def group_changes_refused(world: World) -> None:
    group = f"{world.name}-g"
    for key, value in (
        (HEARTBEAT, "4999"),
        (HEARTBEAT, "15001"),
        (HEARTBEAT, "0"),
        (HEARTBEAT, "x"),
        (HEARTBEAT, ""),
        (SESSION, "44999"),
        (SESSION, "60001"),
        ("consumer.assignment.interval.ms", "15001"),
        ("consumer.assignment.interval.ms", "-1"),
        ("consumer.no.such", "1"),
        ("retention.ms", "1"),
        ("share.record.lock.duration.ms", "14999"),
        ("share.record.lock.duration.ms", "999"),
        ("share.delivery.count.limit", "11"),
        ("share.delivery.count.limit", "1"),
        ("share.partition.max.record.locks", "99"),
        ("share.partition.max.record.locks", "4001"),
        ("share.heartbeat.interval.ms", "1"),
        ("share.session.timeout.ms", "60001"),
        ("share.assignment.interval.ms", "15001"),
        ("share.auto.offset.reset", "never"),
        ("share.auto.offset.reset", "by_duration:PT1H"),
        ("share.auto.offset.reset", "by_duration:-PT1H"),
        ("share.auto.offset.reset", "by_duration:x"),
        ("share.auto.offset.reset", "by_duration:"),
        ("share.auto.offset.reset", ""),
        ("share.auto.offset.reset", "EARLIEST"),
        ("share.isolation.level", "READ_COMMITTED"),
        ("share.renew.acknowledge.enable", "yes"),
        ("streams.heartbeat.interval.ms", "15001"),
        ("streams.session.timeout.ms", "1"),
        ("streams.num.standby.replicas", "3"),
        ("streams.num.standby.replicas", "-1"),
        ("streams.initial.rebalance.delay.ms", "-1"),
        ("streams.assignment.interval.ms", "15001"),
    ):
        change(world, f"{key}={value}", group, (key, value, SET), validate_only=True)
    change(world, "append", group, (HEARTBEAT, "1", APPEND))
    change(world, "subtract", group, (HEARTBEAT, "1", SUBTRACT))
    change(world, "null", group, (HEARTBEAT, None, SET))
    change(world, "twice", group, (HEARTBEAT, "6000", SET), (HEARTBEAT, "7000", SET))
    change(world, "delete an unknown key", group, ("no.such", None, DELETE))
    change(world, "nothing", group)
    change(world, "no name", "", (HEARTBEAT, "6000", SET))
    change(world, "two wrongs", group, (HEARTBEAT, "1", SET), ("no.such", "1", SET))
    whole = {"resource_type": GROUP, "resource_name": "", "configs": [{"name": HEARTBEAT, "value": "8000"}]}
    world.ask("AlterConfigs", 2, "no name", resources=[whole])


def groups_listed(world: World) -> None:
    group, topic = f"{world.name}-g", world.topic("t")
    change(world, "set", group, (HEARTBEAT, "6000", SET))
    until_config(world, GROUP, group, HEARTBEAT, "6000")

    def listed(note: str, *kinds: int) -> None:
        answer = world.quietly("ListConfigResources", 1, resource_types=list(kinds))
        ours = [each for each in answer["config_resources"] if each["resource_name"] in (group, topic.name)]
        world.note(
            note, (answer["error_code"], sorted((each["resource_type"], each["resource_name"]) for each in ours))
        )

    listed("groups", GROUP)
    listed("both", GROUP, TOPIC)
    listed("all")
    change(world, "delete", group, (HEARTBEAT, None, DELETE))
    until_config(world, GROUP, group, HEARTBEAT, "5000")
    listed("groups that have nothing set", GROUP)


def members_hear_of_it(world: World) -> None:
    coordinator(world)
    topic, name = world.topic("t"), new_group(world, "g")
    change(world, "set", name, (HEARTBEAT, "7000", SET))
    until_config(world, GROUP, name, HEARTBEAT, "7000")
    first = join(world, "joins", name, "m", topic)
    change(world, "set", name, (HEARTBEAT, "8000", SET))
    until_config(world, GROUP, name, HEARTBEAT, "8000")
    beat(world, "stays", name, "m", first["member_epoch"])
    beat(world, "leaves", name, "m", -1)


def brokers_change_the_default(world: World) -> None:
    for value in ("-1", "15001", "x", "900"):
        config = {"name": "group.consumer.assignment.interval.ms", "config_operation": SET, "value": value}
        asked = {"resource_type": 4, "resource_name": NODE, "configs": [config]}
        world.ask("IncrementalAlterConfigs", 1, value, resources=[asked], validate_only=True)


def brokers_tell_their_defaults(world: World) -> None:
    describe(world, 4, "of groups", resource(4, NODE, BROKER_KEYS), include_synonyms=True)


SCENARIOS = (
    groups_described,
    groups_changed,
    group_changes_refused,
    groups_listed,
    members_hear_of_it,
    brokers_change_the_default,
    brokers_tell_their_defaults,
)
