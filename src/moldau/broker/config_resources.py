"""The resources that a request changes the configurations of."""

from __future__ import annotations

from typing import Protocol

from moldau.broker.context import Context


class ConfigResource(Protocol):
    """Of a request that changes configurations."""

    resource_type: int
    resource_name: str


def resource_of(resource: ConfigResource, _: Context) -> tuple[int, str]:
    """A resource that is named twice is refused both times."""
    return resource.resource_type, resource.resource_name
