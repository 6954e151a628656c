"""IncrementalAlterConfigs: changes the keys that are named and no others, of topics, brokers and this broker's loggers.

The loggers are this process's own affair: the cluster's metadata knows nothing of them.
"""

from __future__ import annotations

from collections import Counter

from moldau.broker.api import api
from moldau.broker.config_resources import denied_changes, resource_of, without
from moldau.broker.context import Context
from moldau.broker.loggers import LevelChange, change_levels
from moldau.broker.requests.answers import FORWARD_MS
from moldau.controller.settings.configs import (
    AlterConfigOp,
    AlteredResource,
    ConfigChange,
    ResourceChange,
    ResourceType,
    decide_incremental_alter_configs,
    parse_broker_id,
    refuse_changes,
)
from moldau.core.errors import ApiError, ErrorCode
from moldau.wire.api import ApiKey
from moldau.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

PARTS = (("resources", "responses"),)


@api(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    IncrementalAlterConfigsRequest,
    versions=(0, 1),
    parts=PARTS,
    subject=resource_of,
    forwarded=True,
    splits=True,
)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    wanted = [
        ResourceChange(
            type=resource.resource_type,
            name=resource.resource_name,
            changes=[ConfigChange(each.name, each.value, each.config_operation) for each in resource.configs],
        )
        for resource in request.resources
    ]
    times_named = Counter((resource.type, resource.name) for resource in wanted)
    loggers: list[ResourceChange] = []
    others: list[ResourceChange] = []
    for each in wanted:
        is_ours = each.type == ResourceType.BROKER_LOGGER and times_named[each.type, each.name] == 1
        (loggers if is_ours else others).append(each)
    altered: list[AlteredResource] = []
    if context.services.certificates is not None:
        from moldau.broker.certificate_changes import of_our_certificates, refused_certificates  # few brokers have any

        # Files are looked at only for those who may name them. What is named twice is refused whoever names it.
        ours = [each for each in of_our_certificates(others, context) if times_named[each.type, each.name] == 1]
        altered = denied_changes(context, ours)
        altered += await refused_certificates(without(ours, altered), context.services)
        others = [*without(others, altered)]
    altered += await _alter(others, validate_only=request.validate_only, context=context)
    denied = denied_changes(context, loggers)
    altered += [AlteredResource(each.type, each.name, each.error) for each in denied]
    for each in without(loggers, denied):
        altered.append(_alter_loggers(each, validate_only=request.validate_only, context=context))
    order = {(resource.type, resource.name): place for place, resource in enumerate(wanted)}
    altered.sort(key=lambda resource: order[resource.type, resource.name])
    return IncrementalAlterConfigsResponse(responses=[_shape(resource) for resource in altered])


async def _alter(wanted: list[ResourceChange], *, validate_only: bool, context: Context) -> list[AlteredResource]:
    services = context.services
    if not wanted:
        return []
    if not services.controller.is_active and (answer := await _forward(wanted, validate_only, context)) is not None:
        return answer
    denied = denied_changes(context, wanted)
    allowed = without(wanted, denied)
    try:
        altered = await services.controller.write(
            lambda image: decide_incremental_alter_configs(
                image, allowed, config=services.config, validate_only=validate_only
            )
        )
    except ApiError as wrong:
        altered = [AlteredResource(resource.type, resource.name, wrong.code, wrong.message) for resource in allowed]
    return [*altered, *denied]


async def _forward(wanted: list[ResourceChange], validate_only: bool, context: Context) -> list[AlteredResource] | None:
    """The controller's answer; None when there is none, or this broker is the controller by now."""
    forwarding = context.services.forwarding
    if forwarding is None:
        return None
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                each.type,
                each.name,
                [AlterableConfig(change.name, change.operation, change.value) for change in each.changes],
            )
            for each in wanted
        ],
        validate_only=validate_only,
    )
    response = await forwarding.ask_for_client(
        request,
        context.version,
        IncrementalAlterConfigsResponse,
        header=context.header,
        peer=context.peer,
        timeout_ms=FORWARD_MS,
    )
    if response is None:
        return None
    return [
        AlteredResource(each.resource_type, each.resource_name, ErrorCode(each.error_code), each.error_message)
        for each in response.responses
    ]


def _alter_loggers(resource: ResourceChange, *, validate_only: bool, context: Context) -> AlteredResource:
    try:
        refusal = refuse_changes(resource.changes)
        if refusal is not None:
            raise ApiError(refusal.error, refusal.message)
        _check_node(resource.name, context.services.broker_id)
        changes = [_level_change(change) for change in resource.changes]
        change_levels(changes, validate_only=validate_only)
    except ApiError as wrong:
        return AlteredResource(resource.type, resource.name, wrong.code, wrong.message)
    return AlteredResource(resource.type, resource.name)


def _check_node(name: str, broker_id: int) -> None:
    if parse_broker_id("Node", name) != broker_id:
        message = f"Unexpected node id. Expected {broker_id}, but received {name}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


def _level_change(change: ConfigChange) -> LevelChange:
    match change.operation:
        case AlterConfigOp.SET:
            return LevelChange(change.name, change.value)
        case AlterConfigOp.DELETE:
            return LevelChange(change.name, None)
        case AlterConfigOp.APPEND | AlterConfigOp.SUBTRACT:
            verb = AlterConfigOp(change.operation).name
            message = f"{verb} operation is not allowed for the BROKER_LOGGER resource"
            raise ApiError(ErrorCode.INVALID_REQUEST, message)
        case _:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}")


def _shape(resource: AlteredResource) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=resource.error,
        error_message=resource.message,
        resource_type=resource.type,
        resource_name=resource.name,
    )
