"""ListConfigResources: what has a configuration. v0 asks for client metrics only, v1 names the kinds it wants."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.controller.image import ClusterImage
from moldau.controller.settings.configs import ResourceType
from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_RESOURCE_TYPES = frozenset(ResourceType)


@api(ApiKey.LIST_CONFIG_RESOURCES, ListConfigResourcesRequest, versions=(0, 1))
def list_config_resources(request: ListConfigResourcesRequest, context: Context) -> ListConfigResourcesResponse:
    wanted = set(request.resource_types) or set(_RESOURCE_TYPES)
    if context.version == 0:
        wanted = {ResourceType.CLIENT_METRICS}
    if not wanted <= _RESOURCE_TYPES:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = context.services.controller.image
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in sorted(wanted, reverse=True)
            for name in _names(kind, image)
        ]
    )


def _names(kind: int, image: ClusterImage) -> list[str]:
    match kind:
        case ResourceType.TOPIC:
            return sorted(image.topics)
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(broker_id) for broker_id in sorted(image.brokers)]
        case ResourceType.GROUP:
            return sorted(image.group_configs)
        case _:
            return sorted(image.client_metrics_configs)
