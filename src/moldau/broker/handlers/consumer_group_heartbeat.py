"""ConsumerGroupHeartbeat, v0 to v1: join, stay in and leave a consumer group, and learn one's assignment.

A member of v1 makes up its own id and may subscribe by a regular expression; one of v0 is given an id.
"""

from __future__ import annotations

from asyncio import Future
from functools import partial

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.rights import DESCRIBE, GROUP, READ, TOPIC
from moldau.controller.settings.features import has_consumer_groups
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import format_uuid, random_uuid
from moldau.groups.consumer.heartbeating import Heartbeat, check_heartbeat
from moldau.wire.api import ApiKey
from moldau.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


@api(ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatRequest, versions=(0, 1))
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: Context
) -> ConsumerGroupHeartbeatResponse | Future[ConsumerGroupHeartbeatResponse]:
    if not has_consumer_groups(context.services.controller.image, context.services.config):
        return _failed(ErrorCode.UNSUPPORTED_VERSION)
    if not context.may(READ, GROUP, request.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, error_message=None)
    if context.denied(DESCRIBE, TOPIC, request.subscribed_topic_names or ()):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=None)
    groups = context.services.groups
    heartbeat = _heartbeat(request, context)
    try:
        check_heartbeat(heartbeat, context.version, groups.config_of(heartbeat.group_id))
    except ApiError as wrong:
        return ConsumerGroupHeartbeatResponse(error_code=wrong.code, error_message=wrong.message)
    return groups.write(
        heartbeat.group_id, lambda shard, now_ms: shard.decide_consumer_heartbeat(heartbeat, now_ms), _failed
    )


def _failed(error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=error.message)


def _heartbeat(request: ConsumerGroupHeartbeatRequest, context: Context) -> Heartbeat:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return Heartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        new_member_id="" if request.member_id else format_uuid(random_uuid()),
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=None if names is None else frozenset(names),
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None if owned is None else {each.topic_id: frozenset(each.partitions) for each in owned},
        client_id=context.header.client_id or "",
        client_host=f"/{context.peer.host}",
        may_describe=None if context.services.authorization is None else partial(_may_describe, context),
    )


def _may_describe(context: Context, topic: str) -> bool:
    return context.may(DESCRIBE, TOPIC, topic, is_audited=False)
