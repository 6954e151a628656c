"""DescribeClientQuotas and AlterClientQuotas: entities, keys, values, filters, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.differential.schema import versions
from tests.differential.world import World

PRODUCE, CONSUME, REQUESTS = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATIONS, CONNECTIONS = "controller_mutation_rate", "connection_creation_rate"
EXACT, DEFAULT, SPECIFIED = 0, 1, 2

Parts = Mapping[str, str | None]
Components = list[tuple[str, int, str | None]]


def entity(parts: Parts) -> list[dict[str, Any]]:
    return [{"entity_type": kind, "entity_name": name} for kind, name in parts.items()]


def entry(parts: Parts, **values: float | None) -> dict[str, Any]:
    """A value of None takes the key away."""
    ops = [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in values.items()]
    return {"entity": entity(parts), "ops": ops}


def in_order(answer: Any) -> Any:
    """Apache Kafka answers in the order of its hash maps."""
    if not isinstance(answer, dict):
        return answer
    for each in answer["entries"] or []:
        each["entity"].sort(key=lambda part: str(part["entity_type"]))
        each.get("values", []).sort(key=lambda value: str(value["key"]))
    if answer["entries"] is not None:
        answer["entries"].sort(key=lambda each: str(each["entity"]))
    return answer


def alter(world: World, note: str, *entries: dict[str, Any], version: int = 1, validate_only: bool = False) -> None:
    answer = world.quietly("AlterClientQuotas", version, entries=list(entries), validate_only=validate_only)
    world.note(f"AlterClientQuotas v{version} {note}", in_order(answer))


def describe(world: World, note: str, *components: tuple[str, int, str | None], strict: bool, version: int = 1) -> None:
    asked = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]
    answer = world.quietly("DescribeClientQuotas", version, components=asked, strict=strict)
    world.note(f"DescribeClientQuotas v{version} {note}", in_order(answer))


def settled(world: World, user: str) -> None:
    """Apache Kafka answers an alteration before every broker shows it."""
    asked = [{"entity_type": "user", "match_type": EXACT, "match": user}]

    def is_seen() -> bool:
        return bool(world.quietly("DescribeClientQuotas", 1, components=asked, strict=False)["entries"])

    world.until(is_seen, f"the quota of {user}")


def forgotten(world: World, user: str) -> None:
    asked = [{"entity_type": "user", "match_type": EXACT, "match": user}]

    def is_gone() -> bool:
        return not world.quietly("DescribeClientQuotas", 1, components=asked, strict=False)["entries"]

    world.until(is_gone, f"the quota of {user} to go")


def set_and_found(world: World) -> None:
    alice, app, last = f"{world.name}-alice", f"{world.name}-app", f"{world.name}-last"
    entities: list[Parts] = [
        {"user": alice},
        {"user": alice, "client-id": app},
        {"client-id": app, "user": None},
        {"user": alice, "client-id": None},
        {"client-id": app},
    ]
    for version in versions("AlterClientQuotas"):
        entries = [entry(each, producer_byte_rate=1024.0 + version, request_percentage=12.5) for each in entities]
        alter(world, "a trial", *entries, version=version, validate_only=True)
        alter(world, "all", *entries, version=version)
    alter(world, "the last", entry({"user": last}, consumer_byte_rate=1.0))
    settled(world, last)
    for version in versions("DescribeClientQuotas"):
        for strict in (False, True):
            word = "strict" if strict else "loose"
            filters: dict[str, Components] = {
                "user": [("user", EXACT, alice)],
                "client": [("client-id", EXACT, app)],
                "both": [("user", EXACT, alice), ("client-id", EXACT, app)],
                "a user's default": [("user", EXACT, alice), ("client-id", DEFAULT, None)],
                "a client's default": [("user", DEFAULT, None), ("client-id", EXACT, app)],
                "a user's any": [("user", EXACT, alice), ("client-id", SPECIFIED, None)],
                "nobody": [("user", EXACT, f"{world.name}-nobody")],
            }
            for note, components in filters.items():
                describe(world, f"{note}, {word}", *components, strict=strict, version=version)
    removed = [entry(each, producer_byte_rate=None, request_percentage=None) for each in entities]
    alter(world, "taken away", *removed)
    alter(world, "taken away again", *removed, entry({"user": last}, consumer_byte_rate=None))
    forgotten(world, last)
    describe(world, "what is left of the user", ("user", EXACT, alice), strict=False)
    describe(world, "what is left of the client", ("client-id", EXACT, app), strict=False)


def wrong_entities(world: World) -> None:
    wrong: dict[str, Parts] = {
        "none": {},
        "empty user": {"user": ""},
        "empty client": {"client-id": ""},
        "empty address": {"ip": ""},
        "unknown type": {"group": "g"},
        "empty type": {"": "g"},
        "unknown type beside a user": {"user": "u", "group": "g"},
        "address and user": {"ip": "10.0.0.1", "user": "u"},
        "address and client": {"ip": "10.0.0.1", "client-id": "c"},
        "all three": {"ip": "10.0.0.1", "client-id": "c", "user": "u"},
        "unknown host": {"ip": "no-such-host.invalid"},
        "no address": {"ip": "300.1.2.3"},
        "address with a port": {"ip": "10.0.0.1:9092"},
    }
    for note, parts in wrong.items():
        alter(world, note, entry(parts, connection_creation_rate=1.0), validate_only=True)
        alter(world, f"{note}, a client's key", entry(parts, producer_byte_rate=1.0), validate_only=True)
    for address in ("10.0.0.1", "::1", "localhost", None):
        alter(world, f"address {address}", entry({"ip": address}, connection_creation_rate=1.0), validate_only=True)


def wrong_values(world: World) -> None:
    user: Parts = {"user": f"{world.name}-user"}
    address: Parts = {"ip": "10.9.8.7"}
    for key in (PRODUCE, CONSUME, REQUESTS, MUTATIONS):
        for value in (0.0, -1.0, 0.5, 1.5, 1.0000001, 2.0**31, 2.0**63, 1e19, float("inf"), 1e-9):
            alter(world, f"{key} {value}", entry(user, **{key: value}), validate_only=True)
    for value in (0.0, -1.0, 0.5, 1.5, 2.0**31 - 1, 2.0**31, 1e19):
        alter(world, f"{CONNECTIONS} {value}", entry(address, **{CONNECTIONS: value}), validate_only=True)
    alter(world, "unknown key", entry(user, rate=1.0), validate_only=True)
    alter(world, "unknown key taken away", entry(user, rate=None), validate_only=True)
    alter(world, "no key", entry(user), validate_only=True)
    alter(world, "one of two is wrong", entry(user, producer_byte_rate=1.0, rate=1.0), validate_only=True)


def named_twice(world: World) -> None:
    user: Parts = {"user": f"{world.name}-user", "client-id": None}
    other: Parts = {"user": f"{world.name}-other"}
    twice = entry(user, producer_byte_rate=1.0)
    alter(world, "an entity", twice, entry(user, consumer_byte_rate=1.0), validate_only=True)
    twice["ops"] *= 2
    alter(world, "a key", twice, entry(other, producer_byte_rate=1.0), validate_only=True)
    parts = [*entity({"user": "first"}), *entity({"user": f"{world.name}-second"})]
    alter(world, "a type", entry({}, producer_byte_rate=1.0) | {"entity": parts}, validate_only=True)
    alter(world, "nothing")


def wrong_filters(world: World) -> None:
    filters: dict[str, Components] = {
        "empty type": [("", EXACT, "a")],
        "unknown type": [("group", EXACT, "a")],
        "exact without a name": [("user", EXACT, None)],
        "default with a name": [("user", DEFAULT, "a")],
        "specified with a name": [("user", SPECIFIED, "a")],
        "unknown match": [("user", 3, None)],
        "negative match": [("user", -1, "a")],
        "a type twice": [("user", EXACT, "a"), ("user", SPECIFIED, None)],
        "address and user": [("ip", EXACT, "10.0.0.1"), ("user", SPECIFIED, None)],
        "an unknown type after a wrong one": [("user", EXACT, None), ("group", EXACT, "a")],
        "nobody's": [("user", EXACT, f"{world.name}-nobody"), ("client-id", SPECIFIED, None)],
    }
    for note, components in filters.items():
        for version in versions("DescribeClientQuotas"):
            describe(world, note, *components, strict=False, version=version)


SCENARIOS = (set_and_found, wrong_entities, wrong_values, named_twice, wrong_filters)
