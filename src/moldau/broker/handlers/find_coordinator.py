"""FindCoordinator: v1 adds the key's type and an error message, v4 asks for many keys at once, v6 for share groups.

No coordinator runs here yet. Clients take COORDINATOR_NOT_AVAILABLE as "not now" and give up at their own time limit.
"""

from __future__ import annotations

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.limits import COORDINATOR_KEYS_MAX
from moldau.wire.api import ApiKey
from moldau.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

NO_NODE = -1
NO_PORT = -1
BATCHED_SINCE = 4


_MISSING = {
    0: "This broker does not coordinate consumer groups yet; assign partitions instead of subscribing.",
    1: "This broker does not coordinate transactions yet.",
}


@api(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest, versions=(0, 6))
def find_coordinator(request: FindCoordinatorRequest, context: Context) -> FindCoordinatorResponse:
    error, message = _answer(request.key_type)
    if context.version < BATCHED_SINCE:
        return FindCoordinatorResponse(error_code=error, error_message=message, node_id=NO_NODE, host="", port=NO_PORT)
    if len(request.coordinator_keys) > COORDINATOR_KEYS_MAX:
        raise ProtocolViolation(f"{len(request.coordinator_keys)} keys; allowed are {COORDINATOR_KEYS_MAX}")
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=NO_NODE, host="", port=NO_PORT, error_code=error, error_message=message)
            for key in request.coordinator_keys
        ]
    )


def _answer(key_type: int) -> tuple[ErrorCode, str]:
    if key_type not in _MISSING:
        return ErrorCode.INVALID_REQUEST, f"Coordinators of type {key_type} are not supported."
    return ErrorCode.COORDINATOR_NOT_AVAILABLE, _MISSING[key_type]
