"""What groups are at a moment: state, members, and what each member has and is to have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moldau.client.cluster import Cluster, Node, Refused
from moldau.client.groups.asking import Answers, ask_coordinators
from moldau.client.groups.assignments import assigned
from moldau.client.groups.kinds import CLASSIC, CONSUMER, CONSUMER_PROTOCOLS
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.api import ApiKey
from moldau.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from moldau.wire.messages import consumer_group_describe as consumer
from moldau.wire.messages import describe_groups as classic

EMPTY, DEAD, STABLE = "Empty", "Dead", "Stable"
INACTIVE = (EMPTY, DEAD)
MEMBER_TYPES: Mapping[int, bool | None] = {0: False, 1: True}


@dataclass(frozen=True, slots=True)
class Member:
    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] = ()
    epoch: int | None = None
    is_upgraded: bool | None = None
    """Whether it speaks the consumer protocol; None in a classic group, where the question does not come up."""


@dataclass(frozen=True, slots=True)
class Group:
    id: str
    type: str
    protocol: str
    state: str
    assignor: str
    coordinator: Node
    members: tuple[Member, ...]
    epoch: int | None = None
    target_epoch: int | None = None

    @property
    def is_active(self) -> bool:
        return self.state not in INACTIVE


def describe_groups(cluster: Cluster, groups: Iterable[str]) -> Answers[Group]:
    """Of classic and of consumer groups; GROUP_ID_NOT_FOUND for one that does not exist."""
    return ask_coordinators(cluster, groups, lambda broker_id, ids: _described(cluster, broker_id, ids))


def _described(cluster: Cluster, broker_id: int, ids: list[str]) -> dict[str, Group | Refused]:
    """A group is of the consumer protocol, or the broker says that it has none of that name: then it may be classic."""
    node = cluster.node(broker_id)
    found: dict[str, Group | Refused] = {}
    if ApiKey.CONSUMER_GROUP_DESCRIBE in cluster.versions_of(broker_id):
        request = ConsumerGroupDescribeRequest(group_ids=ids)
        for each in cluster.ask_broker(broker_id, request, ConsumerGroupDescribeResponse).groups:
            found[each.group_id] = _consumer_group(each, node)
    left = [each for each in ids if each not in found or _may_be_classic(found[each])]
    if left:
        for one in cluster.ask_broker(broker_id, DescribeGroupsRequest(groups=left), DescribeGroupsResponse).groups:
            found[one.group_id] = _classic_group(one, node)
    return found


def _may_be_classic(answer: Group | Refused) -> bool:
    return isinstance(answer, Refused) and answer.code in (
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNSUPPORTED_VERSION,
    )


def _consumer_group(told: consumer.DescribedGroup, node: Node) -> Group | Refused:
    if told.error_code != ErrorCode.NONE:
        return Refused(told.error_code, told.error_message)
    members = tuple(
        Member(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            _places(each.assignment),
            _places(each.target_assignment),
            each.member_epoch,
            MEMBER_TYPES.get(each.member_type),
        )
        for each in told.members
    )
    return Group(
        told.group_id,
        CONSUMER,
        CONSUMER_PROTOCOLS[0],
        told.group_state,
        told.assignor_name,
        node,
        members,
        told.group_epoch,
        told.assignment_epoch,
    )


def _places(assignment: consumer.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(each.topic_name, number)
            for each in assignment.topic_partitions
            for number in each.partitions
        )
    )


def _classic_group(told: classic.DescribedGroup, node: Node) -> Group | Refused:
    if told.error_code != ErrorCode.NONE:
        return Refused(told.error_code, told.error_message)
    speaks = told.protocol_type in CONSUMER_PROTOCOLS
    members = tuple(
        Member(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            assigned(bytes(each.member_assignment)) if speaks else (),
        )
        for each in told.members
    )
    return Group(told.group_id, CLASSIC, told.protocol_type, told.group_state, told.protocol_data, node, members)
