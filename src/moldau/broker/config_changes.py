"""What AlterConfigs and IncrementalAlterConfigs check before the controller hears of a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from moldau.broker.config_resources import ResourceType, parse_broker_id
from moldau.core.errors import ApiError, ErrorCode


class ConfigChange(Protocol):
    name: str
    value: str | None


class ChangedResource(Protocol):
    resource_type: int
    resource_name: str

    @property
    def configs(self) -> Sequence[ConfigChange]: ...


def named_twice(resources: Iterable[ChangedResource]) -> set[tuple[int, str]]:
    """Resources that a request names more than once: nobody can tell which change was meant to win."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    return {resource for resource, count in times.items() if count > 1}


def check_keys(changes: Sequence[ConfigChange], *, may_be_null: Iterable[str] = ()) -> None:
    """Each key once, each with a value unless it is to be deleted."""
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    allowed = set(may_be_null)
    nulls = [change.name for change in changes if change.value is None and change.name not in allowed]
    if nulls:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


def check_resource(resource: ChangedResource, broker_id: int) -> None:
    """A broker changes its own configuration or the default of all; a topic's name is left to the controller."""
    kind, name = resource.resource_type, resource.resource_name
    if kind in (ResourceType.GROUP, ResourceType.CLIENT_METRICS):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{ResourceType(kind).name} configs are not supported yet.")
    if kind not in (ResourceType.TOPIC, ResourceType.BROKER):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    if kind == ResourceType.TOPIC and name == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    if kind == ResourceType.BROKER and name != "" and parse_broker_id("Node", name) != broker_id:
        message = f"Unexpected broker id, expected {broker_id}, but received {name}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
