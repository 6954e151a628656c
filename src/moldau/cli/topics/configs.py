"""Configurations of topics, brokers and whatever else has them: asked for, and changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from moldau.client.cluster import Cluster, check
from moldau.wire.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.wire.messages.describe_configs import (
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from moldau.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource


class Kind(IntEnum):
    """Of what is configured; the numbers are the protocol's."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Source(IntEnum):
    """Where a value comes from; the numbers are the protocol's."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class Operation(IntEnum):
    SET = 0
    DELETE = 1


def set_to(key: str, value: str) -> AlterableConfig:
    return AlterableConfig(key, Operation.SET, value)


def deleted(key: str) -> AlterableConfig:
    return AlterableConfig(key, Operation.DELETE, None)


def described(
    cluster: Cluster, kind: Kind, names: Iterable[str], *, synonyms: bool = False
) -> dict[str, DescribeConfigsResult]:
    """The answer for each, which may be an error code."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    asked = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(kind, name, None) for name in wanted], include_synonyms=synonyms
    )
    broker = broker_of(kind, wanted[0])
    if broker is None:
        answer = cluster.ask(asked, DescribeConfigsResponse)
    else:
        assert len(wanted) == 1, "each broker answers for itself"
        answer = cluster.ask_broker(broker, asked, DescribeConfigsResponse)
    return {each.resource_name: each for each in answer.results}


def entries(
    cluster: Cluster, kind: Kind, name: str, *, synonyms: bool = False
) -> Sequence[DescribeConfigsResourceResult]:
    found = described(cluster, kind, [name], synonyms=synonyms)[name]
    check(found.error_code, found.error_message)
    return found.configs


def alter(cluster: Cluster, kind: Kind, name: str, changes: Iterable[AlterableConfig]) -> None:
    request = IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(kind, name, list(changes))])
    broker = broker_of(kind, name)
    if broker is None:
        answer = cluster.ask_controller(
            request, IncrementalAlterConfigsResponse, codes=lambda found: [each.error_code for each in found.responses]
        )
    else:
        answer = cluster.ask_broker(broker, request, IncrementalAlterConfigsResponse)
    for each in answer.responses:
        check(each.error_code, each.error_message)


def broker_of(kind: Kind, name: str) -> int | None:
    """The broker that alone can answer; what holds for all of them, any can."""
    return int(name) if kind in (Kind.BROKER, Kind.BROKER_LOGGER) and name else None
