"""Configurations of topics, of brokers, and of all brokers by default: one API for the three."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from starlette.responses import Response

from moldau.client.cluster import Cluster, check
from moldau.core.errors import ErrorCode
from moldau.rest.calls import Call, Json, answer, no_content
from moldau.rest.problems import not_found
from moldau.rest.v3.clusters import broker_of
from moldau.rest.v3.resources import Resources, resources_of
from moldau.rest.v3.topics import described, topics_of
from moldau.web.kafka_errors import of_kafka
from moldau.wire.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.wire.messages.describe_configs import DescribeConfigsResource, DescribeConfigsResourceResult
from moldau.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
ALL_BROKERS = ""  # the name of what every broker has by default
SOURCES = (
    "UNKNOWN", "DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG", "DEFAULT_CONFIG", "DYNAMIC_BROKER_LOGGER_CONFIG",
)  # fmt: skip
DYNAMIC_DEFAULT, DEFAULTS = 3, (0, 4, 5)

Entries = Sequence[DescribeConfigsResourceResult]


class Update(msgspec.Struct):
    value: str | None = None


class Change(msgspec.Struct):
    name: str
    value: str | None = None
    operation: str | None = None


class Changes(msgspec.Struct):
    data: list[Change]
    validate_only: bool = False


class TopicChanges(msgspec.Struct):
    topic_name: str
    configs: list[Change] = []


class ManyChanges(msgspec.Struct):
    data: list[TopicChanges]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose configuration it is, and how its resources are named."""

    type: int
    name: str
    kind: str
    path: tuple[object, ...]
    crn: tuple[object, ...]
    key: str

    def json(self, found: Resources, entry: DescribeConfigsResourceResult) -> Json:
        own: Json = {self.key: int(self.name) if self.key == "broker_id" else self.name or "BROKER"}
        return found.resource(
            self.kind,
            (*self.path, entry.name),
            (*self.crn, entry.name),
            **own,
            name=entry.name,
            value=entry.value,
            is_default=entry.config_source in DEFAULTS,
            is_read_only=entry.read_only,
            is_sensitive=entry.is_sensitive,
            source=_source(entry.config_source),
            synonyms=[
                {"name": each.name, "value": each.value, "source": _source(each.source)} for each in entry.synonyms
            ],
        )


def _source(number: int) -> str:
    return SOURCES[number] if 0 <= number < len(SOURCES) else "UNKNOWN"


def topic_owner(name: str) -> Owner:
    return Owner(TOPIC, name, "KafkaTopicConfig", ("topics", name, "configs"), ("topic", name, "config"), "topic_name")


def broker_owner(number: int) -> Owner:
    path = ("brokers", number, "configs")
    return Owner(BROKER, str(number), "KafkaBrokerConfig", path, ("broker", number, "config"), "broker_id")


CLUSTER = Owner(BROKER, ALL_BROKERS, "KafkaClusterConfig", ("broker-configs",), ("broker-config",), "config_type")


async def _topic(call: Call) -> Owner:
    name = call.name("topic_name")
    await call.session.ask(lambda cluster: described(cluster, name))
    return topic_owner(name)


async def _broker(call: Call) -> Owner:
    return broker_owner((await broker_of(call)).id)


async def _cluster(_: Call) -> Owner:
    return CLUSTER


OWNERS = {"topics": _topic, "brokers": _broker, "broker-configs": _cluster}


async def _owner(call: Call) -> tuple[Resources, Owner]:
    found = await resources_of(call)
    place = call.request.url.path.partition("/clusters/")[2].split("/")[1].partition(":")[0]
    return found, await OWNERS[place](call)


async def list_configs(call: Call) -> Response:
    found, owner = await _owner(call)
    entries = await call.session.ask(lambda cluster: _described(cluster, [owner])[0])
    listed = [owner.json(found, each) for each in entries]
    return answer(found.collection(f"{owner.kind}List", owner.path, listed))


async def get_config(call: Call) -> Response:
    found, owner = await _owner(call)
    entry = await _existing(call, owner)
    return answer(owner.json(found, entry))


async def _existing(call: Call, owner: Owner) -> DescribeConfigsResourceResult:
    name = call.name("name")
    entries = await call.session.ask(lambda cluster: _described(cluster, [owner])[0])
    entry = next((each for each in entries if each.name == name), None)
    if entry is None:
        raise not_found("Config", name)
    return entry


async def update_config(call: Call) -> Response:
    _, owner = await _owner(call)
    wanted = await call.body(Update)
    if owner is not CLUSTER:  # of which only what is set is told
        await _existing(call, owner)
    changes = [_alterable(Change(call.name("name"), wanted.value))]
    await call.session.ask(lambda cluster: _alter(cluster, [(owner, changes)]))
    return no_content()


async def reset_config(call: Call) -> Response:
    _, owner = await _owner(call)
    if owner is not CLUSTER:
        await _existing(call, owner)
    changes = [_alterable(Change(call.name("name"), None, "DELETE"))]
    await call.session.ask(lambda cluster: _alter(cluster, [(owner, changes)]))
    return no_content()


async def alter_configs(call: Call) -> Response:
    _, owner = await _owner(call)
    wanted = await call.body(Changes)
    changes = [_alterable(each) for each in wanted.data]
    await call.session.ask(lambda cluster: _alter(cluster, [(owner, changes)], validate_only=wanted.validate_only))
    return no_content()


async def alter_configs_of_topics(call: Call) -> Response:
    await call.check_cluster()
    wanted = await call.body(ManyChanges)
    changes = [(topic_owner(each.topic_name), [_alterable(one) for one in each.configs]) for each in wanted.data]
    await call.session.ask(lambda cluster: _alter(cluster, changes, validate_only=wanted.validate_only))
    return no_content()


async def list_configs_of_topics(call: Call) -> Response:
    found = await resources_of(call)

    def ask(cluster: Cluster) -> list[tuple[Owner, Entries]]:
        owners = [topic_owner(each.name or "") for each in topics_of(cluster.metadata())]
        return [*zip(owners, _described(cluster, owners), strict=True)]

    there = await call.session.ask(ask)
    return await found.listed(
        "KafkaTopicConfigList",
        ("topics", "-", "configs"),
        lambda: (owner.json(found, each) for owner, entries in there for each in entries),
    )


async def list_configs_of_brokers(call: Call) -> Response:
    found = await resources_of(call)

    def ask(cluster: Cluster) -> list[tuple[Owner, Entries]]:
        owners = [broker_owner(each) for each in cluster.nodes()]
        return [(owner, _described(cluster, [owner])[0]) for owner in owners]

    listed = [owner.json(found, each) for owner, entries in await call.session.ask(ask) for each in entries]
    return answer(found.collection("KafkaBrokerConfigList", ("brokers", "-", "configs"), listed))


def _described(cluster: Cluster, owners: Sequence[Owner]) -> list[Entries]:
    """Raises Refused."""
    if not owners:
        return []
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(each.type, each.name, None) for each in owners], include_synonyms=True
    )
    first = owners[0]
    if first.type == BROKER and first.name:
        results = cluster.ask_broker(int(first.name), request, DescribeConfigsResponse).results
    else:
        results = cluster.ask(request, DescribeConfigsResponse).results
    for each in results:
        check(each.error_code, each.error_message)
    found = {(each.resource_type, each.resource_name): each.configs for each in results}
    entries = [sorted(found.get((each.type, each.name), []), key=lambda one: one.name) for each in owners]
    if first is CLUSTER:
        return [[each for each in entries[0] if each.config_source == DYNAMIC_DEFAULT]]
    return [*entries]


def _alterable(change: Change) -> AlterableConfig:
    operation = (change.operation or "SET").upper()
    if operation not in ("SET", "DELETE"):
        raise of_kafka(ErrorCode.INVALID_REQUEST, f"operation {change.operation!r}: expected SET or DELETE")
    return AlterableConfig(change.name, DELETE if operation == "DELETE" else SET, change.value)


def _alter(
    cluster: Cluster, changes: Sequence[tuple[Owner, list[AlterableConfig]]], *, validate_only: bool = False
) -> None:
    """Raises Refused."""
    resources = [AlterConfigsResource(owner.type, owner.name, configs) for owner, configs in changes]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    owners = [owner for owner, _ in changes]
    if owners and owners[0].type == BROKER and owners[0].name:
        found = cluster.ask_broker(int(owners[0].name), request, IncrementalAlterConfigsResponse)
    else:
        found = cluster.ask_controller(
            request, IncrementalAlterConfigsResponse, codes=lambda each: [one.error_code for one in each.responses]
        )
    for each in found.responses:
        check(each.error_code, each.error_message)
