"""FindCoordinator: v1 adds the key's type and an error message, v4 asks for many keys at once, v6 for share groups.

The coordinator of a group is the leader of its partition of `__consumer_offsets`, and that of a transactional id the
leader of its partition of `__transaction_state`. Each topic is created when the first asks.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Set
from types import MappingProxyType
from typing import Any

from moldau.broker.api import Answer, api
from moldau.broker.context import Context
from moldau.broker.leaders import endpoints
from moldau.broker.requests.answers import Encoded, in_turn
from moldau.broker.rights import AUTHORIZATION_ERRORS, DESCRIBE, GROUP, TRANSACTIONAL_ID
from moldau.broker.topics.creation import create_internal_topic
from moldau.coordinator.placement import partition_for
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.limits import COORDINATOR_KEYS_MAX
from moldau.core.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from moldau.wire.api import ApiKey
from moldau.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

NO_NODE = -1
NO_PORT = -1
BATCHED_SINCE = 4
_TOPICS = MappingProxyType({0: GROUP_METADATA_TOPIC, 1: TRANSACTION_STATE_TOPIC})
_RESOURCES = MappingProxyType({0: GROUP, 1: TRANSACTIONAL_ID})


@api(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest, versions=(0, 6))
def find_coordinator(request: FindCoordinatorRequest, context: Context) -> Answer:
    keys = request.coordinator_keys if context.version >= BATCHED_SINCE else [request.key]
    if len(keys) > COORDINATOR_KEYS_MAX:
        raise ProtocolViolation(f"{len(keys)} coordinators at once; allowed {COORDINATOR_KEYS_MAX}")
    topic = _TOPICS.get(request.key_type)
    denied: Set[str] = frozenset()
    if topic is not None:
        denied = context.denied(DESCRIBE, _RESOURCES[request.key_type], keys)
    if topic is not None and topic not in context.services.image.topics and any(key not in denied for key in keys):
        return _after_creation(topic, request.key_type, keys=keys, denied=denied, context=context)
    return _find_all(keys, request.key_type, denied, context)


async def _after_creation(topic: str, key_type: int, *, keys: list[str], denied: Set[str], context: Context) -> Any:
    await create_internal_topic(context, topic)
    found = _find_all(keys, key_type, denied, context)
    return await found if isinstance(found, Future) else found


def _find_all(
    keys: list[str], key_type: int, denied: Set[str], context: Context
) -> FindCoordinatorResponse | Future[FindCoordinatorResponse | Encoded[FindCoordinatorResponse]]:
    """In slices: a key may have 32,767 characters, all of which decide about its partition."""
    return in_turn(
        keys,
        lambda key: _denied(key, key_type, context.version) if key in denied else _find(key, key_type, context),
        lambda found: _response(found, context.version),
        context,
    )


def _find(key: str, key_type: int, context: Context) -> Coordinator:
    name = _TOPICS.get(key_type)
    if name is None:
        return _refused(key, ErrorCode.INVALID_REQUEST, f"Coordinators of type {key_type} are not supported.")
    image = context.services.image
    topic = image.topics.get(name)
    if topic is None:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE.message)
    leader = topic.partitions[partition_for(key, len(topic.partitions))].leader
    for node_id, host, port, _ in endpoints(image, [leader], context.peer.listener_name):
        return Coordinator(key=key, node_id=node_id, host=host, port=port)
    return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE.message)


def _denied(key: str, key_type: int, version: int) -> Coordinator:
    error = AUTHORIZATION_ERRORS[_RESOURCES[key_type]]
    return _refused(key, error, "" if version >= BATCHED_SINCE else error.message)


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
