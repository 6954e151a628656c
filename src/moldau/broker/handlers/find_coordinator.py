"""FindCoordinator: v1 adds the key's type and an error message, v4 asks for many keys at once, v6 for share groups.

The coordinator of a group is the leader of its partition of `__consumer_offsets`, which is created when the first group
asks. No coordinator of transactions runs here yet. Clients take COORDINATOR_NOT_AVAILABLE as "not now" and give up at
their own time limit.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.leaders import endpoints
from moldau.broker.topic_creation import create_group_topic
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.limits import COORDINATOR_KEYS_MAX
from moldau.core.topic_names import GROUP_METADATA_TOPIC
from moldau.wire.api import ApiKey
from moldau.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

NO_NODE = -1
NO_PORT = -1
BATCHED_SINCE = 4
GROUP = 0
TRANSACTION = 1


@api(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest, versions=(0, 6))
def find_coordinator(
    request: FindCoordinatorRequest, context: Context
) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
    keys = request.coordinator_keys if context.version >= BATCHED_SINCE else [request.key]
    if len(keys) > COORDINATOR_KEYS_MAX:
        raise ProtocolViolation(f"{len(keys)} coordinators at once; allowed {COORDINATOR_KEYS_MAX}")
    if request.key_type == GROUP and GROUP_METADATA_TOPIC not in context.services.controller.image.topics:
        return _after_creation(keys, context)
    return _response([_find(key, request.key_type, context) for key in keys], context.version)


async def _after_creation(keys: list[str], context: Context) -> FindCoordinatorResponse:
    await create_group_topic(context.services)
    return _response([_find(key, GROUP, context) for key in keys], context.version)


def _find(key: str, key_type: int, context: Context) -> Coordinator:
    if key_type == GROUP:
        return _group_coordinator(key, context)
    if key_type == TRANSACTION:
        missing = "This broker does not coordinate transactions yet."
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, missing)
    return _refused(key, ErrorCode.INVALID_REQUEST, f"Coordinators of type {key_type} are not supported.")


def _group_coordinator(key: str, context: Context) -> Coordinator:
    image = context.services.controller.image
    topic = image.topics.get(GROUP_METADATA_TOPIC)
    if topic is None:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE.message)
    leader = topic.partitions[context.services.groups.index_of(key)].leader
    for node_id, host, port, _ in endpoints(image, [leader], context.peer.listener_name):
        return Coordinator(key=key, node_id=node_id, host=host, port=port)
    return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE.message)


def _refused(key: str, error: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=NO_PORT, error_code=error, error_message=message)


def _response(found: list[Coordinator], version: int) -> FindCoordinatorResponse:
    if version >= BATCHED_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or "NONE",
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )
