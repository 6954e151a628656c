"""Members that are taken out of a group by somebody else, because they are gone and their time is long."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.client.cluster import Cluster, Refused
from moldau.client.groups.asking import ask_coordinators, only
from moldau.client.groups.describing import Member
from moldau.core.errors import ErrorCode
from moldau.wire.messages import LeaveGroupRequest, LeaveGroupResponse
from moldau.wire.messages.leave_group import MemberIdentity

GONE = (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)  # whoever left by itself is gone as well


def remove_members(cluster: Cluster, group: str, members: Iterable[Member]) -> None:
    """Static ones by their instance, so that the next of that name joins anew. Raises Refused."""
    identities = [
        MemberIdentity(group_instance_id=each.instance_id) if each.instance_id else MemberIdentity(each.id)
        for each in members
    ]
    request = LeaveGroupRequest(group_id=group, members=identities)

    def ask(broker_id: int, ids: list[str]) -> dict[str, Refused | None]:
        answer = cluster.ask_broker(broker_id, request, LeaveGroupResponse)
        codes = [answer.error_code, *(each.error_code for each in answer.members)]
        wrong = next((code for code in codes if code not in GONE), None)
        return dict.fromkeys(ids, None if wrong is None else Refused(wrong))

    only(ask_coordinators(cluster, [group], ask))
