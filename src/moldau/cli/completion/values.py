"""Candidates for the value of an argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.cli.completion.kinds import Kind
from moldau.cli.completion.names import names_of
from moldau.cli.completion.shapes import Argument

Given = Mapping[str, list[str]]
# What `moldau configs` calls its entities by, and whose names are known.
_ENTITIES = {"topics": Kind.TOPICS, "brokers": Kind.BROKERS, "groups": Kind.GROUPS, "users": Kind.USERS}
_BY_OPTION = {
    "topic": "topics", "broker": "brokers", "broker_defaults": "brokers", "group": "groups", "user": "users",
    "user_defaults": "users", "client": "clients", "client_defaults": "clients", "ip": "ips", "ip_defaults": "ips",
}  # fmt: skip


def values_of(argument: Argument, begun: str, given: Given) -> list[str]:
    """Whole values that begin so; one of a list is added to those before it."""
    before, separator, last = begun.rpartition(argument.separator) if argument.separator else ("", "", begun)
    there = {*before.split(argument.separator)} if separator else {*given.get(argument.dest, [])}
    found = (each for each in _known(argument, given) if each.startswith(last) and each not in there)
    if argument.kind == Kind.TOPICS and not last.startswith("_"):
        found = (each for each in found if not each.startswith("__"))  # nobody looks for the cluster's own
    return [f"{before}{separator}{each}{argument.ending}" for each in found]


def _known(argument: Argument, given: Given) -> Iterable[str]:
    match argument.kind:
        case "":
            return argument.words
        case Kind.PROFILES:
            return _profiles()
        case Kind.TOPIC_CONFIGS:
            return _configs("topics")
        case Kind.BROKER_CONFIGS:
            from moldau.core.config.broker import BROKER_CONFIGS

            return sorted(BROKER_CONFIGS)
        case Kind.ENTITY_CONFIGS:
            return _configs(_entity_type(given))
        case Kind.ENTITIES:
            kind = _ENTITIES.get(_entity_type(given))
            return names_of(kind, given) if kind else []
        case kind:
            return names_of(Kind(kind), given)


def _entity_type(given: Given) -> str:
    named = next((told for option, told in _BY_OPTION.items() if option in given), "")
    return (given.get("entity_type") or [named])[-1]


def _profiles() -> list[str]:
    import os
    from pathlib import Path

    from moldau.cli.profiles import project_file, read_config, user_file

    place = project_file(Path.cwd())
    files = [read_config(each) for each in (user_file(os.environ), place) if each is not None]
    return sorted({name for file in files if file is not None for name in file.profiles})


def _configs(entity_type: str) -> list[str]:
    if entity_type == "topics":
        from moldau.core.config.topic import TOPIC_CONFIGS

        return sorted(TOPIC_CONFIGS)
    if entity_type == "brokers":
        from moldau.core.config.broker import DYNAMIC_BROKER_CONFIGS

        return sorted(DYNAMIC_BROKER_CONFIGS)
    if entity_type == "groups":
        from moldau.core.config.group import GROUP_CONFIGS

        return sorted(GROUP_CONFIGS)
    if entity_type in ("users", "clients", "ips"):
        from moldau.cli.kafka.configs.quotas import IP_KEYS, KEYS

        return [*(IP_KEYS if entity_type == "ips" else KEYS)]
    return []
