"""AlterConfigs: the older way, which gives a resource exactly the keys that are named and takes the others away."""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.config_resources import denied_changes, resource_of, without
from moldau.broker.context import Context
from moldau.controller.settings.configs import AlteredResource, ConfigChange, ResourceChange, decide_alter_configs
from moldau.core.errors import ApiError
from moldau.wire.api import ApiKey
from moldau.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

PARTS = (("resources", "responses"),)


@api(ApiKey.ALTER_CONFIGS, AlterConfigsRequest, versions=(0, 2), parts=PARTS, subject=resource_of, forwarded=True)
async def alter_configs(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    services = context.services
    wanted = [
        ResourceChange(
            type=resource.resource_type,
            name=resource.resource_name,
            changes=[ConfigChange(config.name, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    denied = denied_changes(context, wanted)
    allowed = without(wanted, denied)
    try:
        altered = await services.controller.write(
            lambda image: decide_alter_configs(
                image, allowed, config=services.config, validate_only=request.validate_only
            )
        )
    except ApiError as wrong:
        altered = [AlteredResource(resource.type, resource.name, wrong.code, wrong.message) for resource in allowed]
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=resource.error,
                error_message=resource.message,
                resource_type=resource.type,
                resource_name=resource.name,
            )
            for resource in (*altered, *denied)
        ]
    )
