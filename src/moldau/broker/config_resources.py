"""The resources that requests are about the configurations of, and who may see and change them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType
from typing import Protocol

from moldau.broker.context import Context
from moldau.broker.rights import ALTER_CONFIGS, AUTHORIZATION_ERRORS, CLUSTER, CLUSTER_NAME, GROUP, TOPIC
from moldau.controller.settings.configs import AlteredResource, ResourceChange, ResourceType
from moldau.core.errors import ErrorCode
from moldau.security.acls.vocabulary import AclOperation

# A broker is no resource of its own for ACLs: the cluster's rights are about all of them.
_PROTECTED_AS = MappingProxyType(
    {
        ResourceType.TOPIC: TOPIC,
        ResourceType.GROUP: GROUP,
        ResourceType.BROKER: CLUSTER,
        ResourceType.BROKER_LOGGER: CLUSTER,
        ResourceType.CLIENT_METRICS: CLUSTER,
    }
)


class ConfigResource(Protocol):
    """Of a request that changes configurations."""

    resource_type: int
    resource_name: str


def resource_of(resource: ConfigResource, _: Context) -> tuple[int, str]:
    """A resource that is named twice is refused both times."""
    return resource.resource_type, resource.resource_name


def config_denial(context: Context, operation: AclOperation, kind: int, name: str) -> ErrorCode | None:
    """The error for a client that may not; None for kinds that are refused as such."""
    protected = _PROTECTED_AS.get(ResourceType(kind)) if kind in _KINDS else None
    if protected is None or context.may(operation, protected, CLUSTER_NAME if protected is CLUSTER else name):
        return None
    return AUTHORIZATION_ERRORS[protected]


_KINDS = frozenset(ResourceType)


def denied_changes(context: Context, wanted: Sequence[ResourceChange]) -> list[AlteredResource]:
    """Of those that are named once: whoever names one twice is told that, and nothing else."""
    if context.services.authorization is None:
        return []
    times_named = Counter((each.type, each.name) for each in wanted)
    return [
        AlteredResource(each.type, each.name, error, error.message)
        for each in wanted
        if times_named[each.type, each.name] == 1
        and (error := config_denial(context, ALTER_CONFIGS, each.type, each.name)) is not None
    ]


def without(wanted: Sequence[ResourceChange], denied: Sequence[AlteredResource]) -> Sequence[ResourceChange]:
    if not denied:
        return wanted
    refused = {(each.type, each.name) for each in denied}
    return [each for each in wanted if (each.type, each.name) not in refused]
