"""The offsets that groups have committed: read, committed anew by nobody's member, and deleted; and groups deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from moldau.client.cluster import Cluster, Refused
from moldau.client.groups.asking import Answers, ask_coordinators, only
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.api import ApiKey
from moldau.wire.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from moldau.wire.messages import offset_commit as committing
from moldau.wire.messages import offset_delete as deleting
from moldau.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup

NAMED_TOPICS = 9  # later versions of OffsetFetch and OffsetCommit have ids of topics instead of their names
ONE_GROUP = 7  # later versions of OffsetFetch ask about many


@dataclass(frozen=True, slots=True)
class Committed:
    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


Offsets = dict[TopicPartition, Committed]
Codes = dict[TopicPartition, int]


def committed_offsets(cluster: Cluster, groups: Iterable[str]) -> Answers[Offsets]:
    """All that each group has committed, by topic and partition; nothing for a group that does not exist."""
    return ask_coordinators(cluster, groups, lambda broker_id, ids: _fetched(cluster, broker_id, ids))


def _fetched(cluster: Cluster, broker_id: int, ids: list[str]) -> dict[str, Offsets | Refused]:
    newest = cluster.versions_of(broker_id).get(ApiKey.OFFSET_FETCH, (0, 0))[1]
    if newest > ONE_GROUP:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(each, topics=None) for each in ids])
        answer = cluster.ask_broker(broker_id, request, OffsetFetchResponse, version_max=NAMED_TOPICS)
        return {each.group_id: _offsets(each) for each in answer.groups}
    found: dict[str, Offsets | Refused] = {}
    for group in ids:
        one = OffsetFetchRequest(group_id=group, topics=None)
        answer = cluster.ask_broker(broker_id, one, OffsetFetchResponse, version_max=ONE_GROUP)
        found[group] = _offsets(answer)
    return found


def _offsets(told: OffsetFetchResponseGroup | OffsetFetchResponse) -> Offsets | Refused:
    if told.error_code != ErrorCode.NONE:
        return Refused(told.error_code)
    found = {
        TopicPartition(topic.name, each.partition_index): Committed(
            each.committed_offset,
            each.committed_leader_epoch if each.committed_leader_epoch >= 0 else None,
            each.metadata or "",
        )
        for topic in told.topics
        for each in topic.partitions
        if each.error_code == ErrorCode.NONE and each.committed_offset >= 0
    }
    return dict(sorted(found.items()))


def commit_offsets(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int]) -> Codes:
    """For a group without members, which comes to be if it did not exist. An error code for each partition."""
    topics = [
        committing.OffsetCommitRequestTopic(
            topic,
            partitions=[committing.OffsetCommitRequestPartition(place.partition, offset) for place, offset in places],
        )
        for topic, places in groupby(sorted(offsets.items()), key=lambda each: each[0].topic)
    ]
    request = OffsetCommitRequest(group_id=group, topics=topics)

    def ask(broker_id: int, ids: list[str]) -> dict[str, Codes | Refused]:
        answer = cluster.ask_broker(broker_id, request, OffsetCommitResponse, version_max=NAMED_TOPICS)
        codes = {
            TopicPartition(topic.name, each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }
        return dict.fromkeys(ids, _one_refusal(codes))

    return only(ask_coordinators(cluster, [group], ask))


def _one_refusal(codes: Codes) -> Codes | Refused:
    """A coordinator that refuses the group says so of each partition."""
    told = set(codes.values())
    return Refused(min(told)) if len(told) == 1 and told != {ErrorCode.NONE} else codes


def delete_offsets(cluster: Cluster, group: str, places: Iterable[TopicPartition]) -> Codes:
    """An error code for each partition. Raises Refused for the group."""
    topics = [
        deleting.OffsetDeleteRequestTopic(
            topic, [deleting.OffsetDeleteRequestPartition(place.partition) for place in named]
        )
        for topic, named in groupby(sorted(places), key=lambda place: place.topic)
    ]
    request = OffsetDeleteRequest(group_id=group, topics=topics)

    def ask(broker_id: int, ids: list[str]) -> dict[str, Codes | Refused]:
        answer = cluster.ask_broker(broker_id, request, OffsetDeleteResponse)
        if answer.error_code != ErrorCode.NONE:
            return dict.fromkeys(ids, Refused(answer.error_code))
        codes = {
            TopicPartition(topic.name, each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }
        return dict.fromkeys(ids, codes)

    return only(ask_coordinators(cluster, [group], ask))


def delete_groups(cluster: Cluster, groups: Iterable[str]) -> Answers[None]:
    """Groups without members, and all that they committed. None for what is gone."""

    def ask(broker_id: int, ids: list[str]) -> dict[str, Refused | None]:
        answer = cluster.ask_broker(broker_id, DeleteGroupsRequest(ids), DeleteGroupsResponse)
        return {
            each.group_id: None if each.error_code == ErrorCode.NONE else Refused(each.error_code)
            for each in answer.results
        }

    return ask_coordinators(cluster, groups, ask)
