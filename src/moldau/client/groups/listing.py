"""Which groups there are, as every broker tells of those that it coordinates."""

from __future__ import annotations

import time
from dataclasses import dataclass

from moldau.client.cluster import PASSING, PAUSE_S, Cluster, check
from moldau.client.groups.kinds import CONSUMER_PROTOCOLS
from moldau.core.errors import ErrorCode
from moldau.wire.messages import ListGroupsRequest, ListGroupsResponse


@dataclass(frozen=True, slots=True)
class Listed:
    group: str
    type: str
    protocol: str
    state: str
    """Brokers of old don't tell it: then it is empty, as is the type."""

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol in CONSUMER_PROTOCOLS


def list_groups(cluster: Cluster) -> list[Listed]:
    """All of them, by name. Raises Refused."""
    found: dict[str, Listed] = {}
    for broker_id in cluster.nodes():
        for each in _of_broker(cluster, broker_id).groups:
            kind = each.group_type.capitalize()
            found[each.group_id] = Listed(each.group_id, kind, each.protocol_type, each.group_state)
    return [found[group] for group in sorted(found)]


def _of_broker(cluster: Cluster, broker_id: int) -> ListGroupsResponse:
    deadline_s = time.monotonic() + cluster.timeout_s
    while True:
        answer = cluster.ask_broker(broker_id, ListGroupsRequest(), ListGroupsResponse)
        is_over = answer.error_code not in PASSING or time.monotonic() >= deadline_s
        # A broker that coordinates nothing yet has no groups to tell of.
        if is_over and answer.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
            check(answer.error_code)
        if is_over:
            return answer
        time.sleep(PAUSE_S)
