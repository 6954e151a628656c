"""JoinGroup, v0 to v9: enter a classic group, or its next generation; the answer waits until all have joined.

v1 separates the rebalance time-out from the session's, v4 tells a new client its id first, v5 adds static members and
v9 spares a leader who takes its old place the computing of an assignment.
"""

from __future__ import annotations

from asyncio import Future

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import together
from moldau.broker.rights import GROUP, READ
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.ids import random_uuid
from moldau.core.limits import GROUP_PROTOCOLS_MAX, STRING_BYTES_MAX
from moldau.core.text import cut
from moldau.groups.classic.members import Joining, Protocol
from moldau.wire.api import ApiKey
from moldau.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

REBALANCE_TIMEOUT_SINCE = 1
ID_FIRST_SINCE = 4
NULL_PROTOCOL_SINCE = 7
SKIPPED_ASSIGNMENT_SINCE = 9


@api(ApiKey.JOIN_GROUP, JoinGroupRequest, versions=(0, 9))
def join_group(request: JoinGroupRequest, context: Context) -> JoinGroupResponse | Future[JoinGroupResponse]:
    if len(request.protocols) > GROUP_PROTOCOLS_MAX:
        raise ProtocolViolation(f"{len(request.protocols)} protocols of one member; allowed {GROUP_PROTOCOLS_MAX}")

    def failed(error: ErrorCode) -> JoinGroupResponse:
        protocol = None if context.version >= NULL_PROTOCOL_SINCE else ""
        return JoinGroupResponse(error_code=error, protocol_name=protocol, member_id=request.member_id)

    if not context.may(READ, GROUP, request.group_id):
        refused = failed(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        refused.member_id = ""
        return refused
    joining = _joining(request, context)

    answer = context.services.groups.write(
        request.group_id, lambda shard, now_ms: shard.decide_join(joining, now_ms), failed
    )
    return answer if context.version >= NULL_PROTOCOL_SINCE else together([answer], _with_some_protocol)


def _with_some_protocol(answers: list[JoinGroupResponse]) -> JoinGroupResponse:
    """Old versions have no null for the protocol of a group that has none."""
    (answer,) = answers
    if answer.protocol_name is None:
        answer.protocol_name = ""
    return answer


def _joining(request: JoinGroupRequest, context: Context) -> Joining:
    version, client_id = context.version, context.header.client_id or ""
    has_both_timeouts = version >= REBALANCE_TIMEOUT_SINCE
    return Joining(
        group_id=request.group_id,
        member_id=request.member_id,
        new_member_id=_new_member_id(request.group_instance_id or client_id),
        instance_id=request.group_instance_id,
        client_id=client_id,
        client_host=f"/{context.peer.host}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if has_both_timeouts else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple(Protocol(each.name, bytes(each.metadata)) for each in request.protocols),
        must_know_id=version >= ID_FIRST_SINCE,
        may_skip_assignment=version >= SKIPPED_ASSIGNMENT_SINCE,
    )


def _new_member_id(name: str) -> str:
    """The name and a uuid in the usual notation. Of a name that leaves no room for it, the beginning."""
    text = random_uuid().hex()
    suffix = "-".join(("", text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    return cut(name, STRING_BYTES_MAX - len(suffix)) + suffix
