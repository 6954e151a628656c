"""Configurations of client metrics: described, changed, refused and listed."""

from __future__ import annotations

from tests.differential.scenarios.configs import (
    APPEND,
    CLIENT_METRICS,
    DELETE,
    SET,
    SUBTRACT,
    describe,
    resource,
    until_config,
)
from tests.differential.schema import versions
from tests.differential.world import World

INTERVAL, MATCH, METRICS = "interval.ms", "match", "metrics"


def change(world: World, note: str, name: str, *changes: tuple[str, str | None, int], dry: bool = False) -> None:
    configs = [{"name": key, "value": value, "config_operation": operation} for key, value, operation in changes]
    wanted = {"resource_type": CLIENT_METRICS, "resource_name": name, "configs": configs}
    world.ask("IncrementalAlterConfigs", 1, note, resources=[wanted], validate_only=dry)


def subscriptions_described(world: World) -> None:
    name = f"{world.name}-s"
    for version in versions("DescribeConfigs"):
        describe(world, version, "nothing set", resource(CLIENT_METRICS, name))
        describe(world, version, "no name", resource(CLIENT_METRICS, ""))
    match = " client_id = b , client_software_name = x"
    change(world, "all", name, (METRICS, " a , b ,a", SET), (INTERVAL, " 200 ", SET), (MATCH, match, SET))
    until_config(world, CLIENT_METRICS, name, INTERVAL, "200")
    for version in versions("DescribeConfigs"):
        describe(world, version, "all", resource(CLIENT_METRICS, name))
        describe(world, version, "synonyms", resource(CLIENT_METRICS, name), include_synonyms=True)
        describe(world, version, "some", resource(CLIENT_METRICS, name, [METRICS, "no.such"]))
    describe(world, 4, "documentation", resource(CLIENT_METRICS, name), include_documentation=True)


def subscriptions_changed(world: World) -> None:
    name = f"{world.name}-s"
    change(world, "set", name, (METRICS, "a,b", SET))
    until_config(world, CLIENT_METRICS, name, METRICS, "a,b")
    change(world, "another key", name, (INTERVAL, "500", SET))
    until_config(world, CLIENT_METRICS, name, INTERVAL, "500")
    change(world, "a list that is empty", name, (METRICS, "", SET))
    until_config(world, CLIENT_METRICS, name, METRICS, "")
    describe(world, 4, "empty is a value", resource(CLIENT_METRICS, name), include_synonyms=True)
    change(world, "delete what is not set", name, (MATCH, None, DELETE))
    whole = {"resource_type": CLIENT_METRICS, "resource_name": name, "configs": [{"name": METRICS, "value": "*"}]}
    for version in versions("AlterConfigs"):
        world.ask("AlterConfigs", version, "whole", resources=[whole])
    until_config(world, CLIENT_METRICS, name, METRICS, "*")
    until_config(world, CLIENT_METRICS, name, INTERVAL, "300000")
    change(world, "only validated", name, (METRICS, "c", SET), dry=True)
    describe(world, 4, "as before", resource(CLIENT_METRICS, name), include_synonyms=True)
    change(world, "nothing any more", name, (METRICS, None, DELETE))


def subscriptions_refused(world: World) -> None:
    name = f"{world.name}-s"
    wanted = {
        INTERVAL: ("99", "100", "3600000", "3600001", "x", "", "-1", "2147483648", "200 "),
        METRICS: ("*", "", "a", "a,b", "a,a", "a,,b", ",", " a , b ", "*,a"),
        MATCH: (
            "client_id=a", "client_id = a ", "client_id", "client_id=a=b", "=a", "client_id=", "nope=a", "client_id=(",
            "client_id=[", "client_id=a,client_id=b", "", "client_id=a,", "client_id=.*==",
            "client_id==a", "Client_id=a", "client_id=a,,client_software_name=b", "client_source_port=[0-9]+",
            "client_instance_id=x", "client_software_version=1.*", "client_source_address=127.*", "===", "client_id= ",
        ),
    }  # fmt: skip
    for key, values in wanted.items():
        for value in values:
            change(world, f"{key}={value}", name, (key, value, SET), dry=True)
    for key in (*wanted, "no.such"):
        change(world, f"append to {key}", name, (key, "1", APPEND), dry=True)
        change(world, f"subtract from {key}", name, (key, "1", SUBTRACT), dry=True)
    change(world, "null", name, (METRICS, None, SET))
    change(world, "twice", name, (METRICS, "a", SET), (METRICS, "b", SET))
    change(world, "an unknown key", name, ("no.such", "1", SET))
    change(world, "delete an unknown key", name, ("no.such", None, DELETE))
    change(world, "nothing", name)
    change(world, "no name", "", (METRICS, "a", SET))
    change(world, "no name, and nothing", "")
    change(world, "no name, append", "", (METRICS, "a", APPEND))
    change(world, "two wrongs", name, (INTERVAL, "1", SET), (MATCH, "x", SET))
    change(world, "wrong, and unknown", name, (INTERVAL, "x", SET), ("no.such", "1", SET))
    whole = {"resource_type": CLIENT_METRICS, "resource_name": "", "configs": [{"name": METRICS, "value": "a"}]}
    world.ask("AlterConfigs", 2, "no name", resources=[whole])


def subscriptions_listed(world: World) -> None:
    names = [f"{world.name}-{each}" for each in ("a", "b c/\u00e9")]
    for name in names:
        change(world, "set", name, (METRICS, "*", SET))
        until_config(world, CLIENT_METRICS, name, METRICS, "*")

    def listed(note: str, version: int, *kinds: int) -> None:
        answer = world.quietly("ListConfigResources", version, resource_types=list(kinds))
        ours = [each for each in answer["config_resources"] if each["resource_name"] in names]
        world.note(note, (answer["error_code"], sorted(ours, key=lambda each: each["resource_name"])))

    listed("the oldest version", 0)
    listed("client metrics", 1, CLIENT_METRICS)
    listed("all", 1)
    for name in names:
        change(world, "delete", name, (METRICS, None, DELETE))
        until_config(world, CLIENT_METRICS, name, METRICS, "")
    listed("nothing set", 0)


SCENARIOS = (subscriptions_described, subscriptions_changed, subscriptions_refused, subscriptions_listed)
