"""Configurations of topics, brokers, their loggers, groups and client metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moldau.cli.failures import UsageError
from moldau.cli.kafka.configs.changes import Changes
from moldau.cli.kafka.configs.options import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    DEFAULT,
    GROUPS,
    TOPICS,
    Entities,
)
from moldau.cli.kafka.java import hash_order, text_hash
from moldau.cli.topics.configs import Kind, Source, alter, deleted, entries, set_to
from moldau.client.cluster import Cluster, check
from moldau.client.connection import Unsupported
from moldau.core.topic_names import topic_name_problem
from moldau.wire.messages import ListConfigResourcesRequest, ListConfigResourcesResponse
from moldau.wire.messages.describe_configs import DescribeConfigsResourceResult

KINDS = {
    TOPICS: Kind.TOPIC,
    BROKERS: Kind.BROKER,
    BROKER_LOGGERS: Kind.BROKER_LOGGER,
    CLIENT_METRICS: Kind.CLIENT_METRICS,
    GROUPS: Kind.GROUP,
}
SOURCES = {
    Kind.TOPIC: Source.DYNAMIC_TOPIC_CONFIG,
    Kind.CLIENT_METRICS: Source.DYNAMIC_CLIENT_METRICS_CONFIG,
    Kind.GROUP: Source.DYNAMIC_GROUP_CONFIG,
}


def describe(cluster: Cluster, entities: Entities, *, shows_all: bool) -> None:
    kind, name = KINDS[entities.type], entities.name
    check_name(kind, name)
    if name is None:
        names = existing(cluster, kind)
    elif name == DEFAULT or shows_all or name in existing(cluster, kind):
        names = [name]
    else:
        print(f"The {singular(entities.type)} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    for each in names:
        if each == DEFAULT:
            print(f"Default configs for {entities.type} in the cluster are:")
        else:
            print(f"{'All' if shows_all else 'Dynamic'} configs for {singular(entities.type)} {each} are:")
        print_entries(shown(cluster, kind, each, shows_all=shows_all))


def check_name(kind: Kind, name: str | None) -> None:
    problem = topic_name_problem(name) if kind == Kind.TOPIC and name is not None else None
    if problem:
        raise UsageError(problem)


def singular(kind: str) -> str:
    return kind[:-1]


def existing(cluster: Cluster, kind: Kind) -> list[str]:
    """Those that are there, and those that are configured without being there."""
    match kind:
        case Kind.TOPIC:
            there = [each.name or "" for each in cluster.metadata().topics]
            return hash_order(dict.fromkeys([*there, *configured(cluster, kind)]), text_hash)
        case Kind.BROKER | Kind.BROKER_LOGGER:
            known = [str(each) for each in cluster.nodes()]
            return [*known, DEFAULT] if kind == Kind.BROKER else known
        case Kind.GROUP:
            return list(dict.fromkeys([*configured(cluster, kind), *groups(cluster)]))
        case Kind.CLIENT_METRICS:
            return configured(cluster, kind)


def configured(cluster: Cluster, kind: Kind) -> list[str]:
    try:
        answer = cluster.ask(ListConfigResourcesRequest(resource_types=[kind]), ListConfigResourcesResponse)
    except Unsupported:
        if kind == Kind.CLIENT_METRICS:  # of which nothing else knows the names
            raise
        return []
    check(answer.error_code)
    return [each.resource_name for each in answer.config_resources if each.resource_type == kind]


def groups(cluster: Cluster) -> list[str]:
    from moldau.wire.messages import ListGroupsRequest, ListGroupsResponse

    found = []
    for broker in cluster.nodes():
        answer = cluster.ask_broker(broker, ListGroupsRequest(), ListGroupsResponse)
        check(answer.error_code)
        found += [each.group_id for each in answer.groups]
    return sorted(found)


def shown(cluster: Cluster, kind: Kind, name: str, *, shows_all: bool) -> list[DescribeConfigsResourceResult]:
    source = SOURCES.get(kind)
    if kind == Kind.BROKER:
        source = Source.DYNAMIC_BROKER_CONFIG if name else Source.DYNAMIC_DEFAULT_BROKER_CONFIG
    found = entries(cluster, kind, name, synonyms=True)
    chosen = [each for each in found if shows_all or source is None or each.config_source == source]
    return sorted(chosen, key=lambda each: each.name)


def print_entries(found: Iterable[DescribeConfigsResourceResult]) -> None:
    for each in found:
        synonyms = ", ".join(f"{source_name(one.source)}:{one.name}={text(one.value)}" for one in each.synonyms)
        sensitive = "true" if each.is_sensitive else "false"
        print(f"  {each.name}={text(each.value)} sensitive={sensitive} synonyms={{{synonyms}}}")


def source_name(number: int) -> str:
    return Source(number).name if number in {*Source} else Source.UNKNOWN.name


def text(value: str | None) -> str:
    """A password has no value to show."""
    return "null" if value is None else value


def change(cluster: Cluster, entities: Entities, wanted: Changes) -> None:
    kind, name = KINDS[entities.type], entities.name
    assert name is not None, "an alteration names what it alters"
    if kind == Kind.BROKER_LOGGER:
        check_loggers(entries(cluster, kind, name), wanted.keys)
    alterations = [*(set_to(key, value) for key, value in wanted.added.items()), *map(deleted, wanted.deleted)]
    alter(cluster, kind, name, alterations)


def check_loggers(known: Sequence[DescribeConfigsResourceResult], wanted: Iterable[str]) -> None:
    names = {each.name for each in known}
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise UsageError(f"Invalid broker logger(s): {','.join(unknown)}")
