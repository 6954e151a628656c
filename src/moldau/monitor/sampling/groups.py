"""Groups: which there are, in which state, who their members are, and what they committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from moldau.client.cluster import Cluster, NoAnswer, words_of
from moldau.client.connection import Unsupported
from moldau.core.errors import ErrorCode, ProtocolViolation
from moldau.core.ids import TopicPartition
from moldau.groups.classic.consumer_protocol import read_assignment
from moldau.monitor.sampling.topics import Layout
from moldau.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from moldau.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from moldau.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from moldau.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

AT_ONCE_MAX = 500  # groups in one question: an answer stays some MB small
MANY_GROUPS_VERSION = 8  # of OffsetFetch
SHARE, CONSUMER = "share", "consumer"  # types; share groups have no offsets that they commit
WITHOUT_MEMBERS = ("Empty", "Dead")

Committed = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Member:
    id: str
    client_id: str
    host: str
    assigned: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class SeenGroup:
    name: str
    type: str
    state: str
    protocol_type: str = ""
    members: tuple[Member, ...] = ()
    committed: Committed | None = None
    """None where nobody answered."""
    coordinator: int = -1
    assignor: str = ""
    """What its members agreed on, such as range."""


class Described(NamedTuple):
    members: tuple[Member, ...] = ()
    assignor: str = ""


NOTHING = Described()


@dataclass(slots=True)
class SeenGroups:
    groups: dict[str, SeenGroup] = field(default_factory=dict)
    are_all: bool = True
    """Every broker told of those that it coordinates."""


def seen_groups(cluster: Cluster, known: Layout, problems: list[str]) -> SeenGroups:
    found = SeenGroups()
    for broker in known.nodes:
        try:
            listed = _listed(cluster, broker)
        except (NoAnswer, ProtocolViolation) as wrong:
            problems.append(str(wrong))
            found.are_all = False
            continue
        except PermissionError as wrong:
            problems.append(f"groups of broker {broker}: {wrong}")
            found.are_all = False
            continue
        try:
            committed = _committed(cluster, broker, known, [each.group_id for each in listed], problems)
            members = _members(cluster, broker, listed, problems)
        except (NoAnswer, ProtocolViolation) as wrong:
            problems.append(str(wrong))
            committed, members = {}, {}
        for each in listed:
            name = each.group_id
            found.groups[name] = SeenGroup(
                name,
                each.group_type,
                each.group_state,
                each.protocol_type,
                members.get(name, NOTHING).members,
                committed.get(name),
                broker,
                members.get(name, NOTHING).assignor,
            )
    return found


def _listed(cluster: Cluster, broker: int) -> list[ListedGroup]:
    answer = cluster.ask_broker(broker, ListGroupsRequest(), ListGroupsResponse)
    if answer.error_code != ErrorCode.NONE:
        raise PermissionError(words_of(answer.error_code))
    return [each for each in answer.groups if each.group_type.lower() != SHARE]


def _chunks(names: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(names)
    while chunk := [*islice(rest, size)]:
        yield chunk


def _committed(
    cluster: Cluster, broker: int, known: Layout, names: Sequence[str], problems: list[str]
) -> dict[str, Committed]:
    found: dict[str, Committed] = {}
    ids = {topic.id: topic.name for topic in known.topics.values()}
    _, newest = cluster.versions_of(broker).get(OffsetFetchRequest.API_KEY, (0, 0))
    for chunk in _chunks(names, AT_ONCE_MAX if newest >= MANY_GROUPS_VERSION else 1):
        if newest >= MANY_GROUPS_VERSION:
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(name, topics=None) for name in chunk])
            answer = cluster.ask_broker(broker, request, OffsetFetchResponse)
            answered = [(each.group_id, each.error_code, _by_name(each.topics, ids)) for each in answer.groups]
        else:
            request = OffsetFetchRequest(group_id=chunk[0], topics=None)
            answer = cluster.ask_broker(broker, request, OffsetFetchResponse)
            answered = [(chunk[0], answer.error_code, {each.name: each for each in answer.topics})]
        for name, code, topics in answered:
            if code == ErrorCode.NONE:
                found[name] = _offsets(topics)
            else:
                problems.append(f"offsets of group {name}: {words_of(code)}")
    return found


AnyTopic = OffsetFetchResponseTopic | OffsetFetchResponseTopics


def _by_name(topics: Iterable[OffsetFetchResponseTopics], ids: Mapping[bytes, str]) -> dict[str, AnyTopic]:
    """A topic whose id is in no metadata is gone."""
    named = ((topic.name or ids.get(topic.topic_id, ""), topic) for topic in topics)
    return {name: topic for name, topic in named if name}


def _offsets(topics: Mapping[str, AnyTopic]) -> Committed:
    return {
        TopicPartition(name, each.partition_index): each.committed_offset
        for name, topic in topics.items()
        for each in topic.partitions
        if each.error_code == ErrorCode.NONE and each.committed_offset >= 0
    }


def _members(cluster: Cluster, broker: int, listed: Sequence[ListedGroup], problems: list[str]) -> dict[str, Described]:
    found: dict[str, Described] = {}
    with_members = [each for each in listed if each.group_state not in WITHOUT_MEMBERS]
    classic = [each.group_id for each in with_members if each.group_type.lower() != CONSUMER]
    for chunk in _chunks(classic, AT_ONCE_MAX):
        answer = cluster.ask_broker(broker, DescribeGroupsRequest(groups=chunk), DescribeGroupsResponse)
        for group in answer.groups:
            members = tuple(
                Member(each.member_id, each.client_id, each.client_host, _assigned(bytes(each.member_assignment)))
                for each in group.members
            )
            found[group.group_id] = Described(members, group.protocol_data)
    modern = [each.group_id for each in with_members if each.group_type.lower() == CONSUMER]
    for chunk in _chunks(modern, AT_ONCE_MAX):
        try:
            described = cluster.ask_broker(
                broker, ConsumerGroupDescribeRequest(group_ids=chunk), ConsumerGroupDescribeResponse
            )
        except Unsupported as wrong:
            problems.append(str(wrong))
            break
        for each in described.groups:
            members = tuple(
                Member(
                    member.member_id,
                    member.client_id,
                    member.client_host,
                    tuple(
                        TopicPartition(topic.topic_name, partition)
                        for topic in member.assignment.topic_partitions
                        for partition in topic.partitions
                    ),
                )
                for member in each.members
            )
            found[each.group_id] = Described(members, each.assignor_name)
    return found


def _assigned(assignment: bytes) -> tuple[TopicPartition, ...]:
    """Groups of Connect and others have assignments of their own make."""
    if not assignment:
        return ()
    try:
        topics = read_assignment(assignment).partitions
    except ProtocolViolation:
        return ()
    return tuple(TopicPartition(each.topic, partition) for each in topics for partition in each.partitions)
