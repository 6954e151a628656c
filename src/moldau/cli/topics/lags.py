"""The group that is furthest behind in each topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from moldau.client.cluster import Cluster, check
from moldau.core.ids import TopicPartition
from moldau.wire.api import ApiKey
from moldau.wire.messages import ListGroupsRequest, ListGroupsResponse, OffsetFetchRequest, OffsetFetchResponse
from moldau.wire.messages.metadata import MetadataResponseTopic
from moldau.wire.messages.offset_fetch import OffsetFetchRequestGroup

MANY_SINCE = 8  # of OffsetFetch; before, it asked about one group

Committed = tuple[str, TopicPartition, int]
"""A group, and the offset that it reads next."""


def add_lags(
    cluster: Cluster,
    topics: Sequence[MetadataResponseTopic],
    ends: Mapping[TopicPartition, int],
    rows: Mapping[str, dict[str, object]],
) -> None:
    """Records that the group has not read, of all partitions for which it committed an offset."""
    names = {each.topic_id: each.name or "" for each in topics}
    lags: dict[tuple[str, str], int] = {}
    for group, place, offset in committed(cluster, names):
        if place in ends and offset >= 0 and place.topic in rows:
            key = place.topic, group
            lags[key] = lags.get(key, 0) + max(0, ends[place] - offset)
    for row in rows.values():
        row["lag"] = row["group"] = None
    # The greatest last; of those that are equally far behind, the first by its name.
    for (topic, group), lag in sorted(sorted(lags.items(), reverse=True), key=lambda each: each[1]):
        rows[topic].update(lag=lag, group=group)


def committed(cluster: Cluster, names: Mapping[bytes, str]) -> Iterator[Committed]:
    for broker in cluster.nodes():
        listed = cluster.ask_broker(broker, ListGroupsRequest(), ListGroupsResponse)
        check(listed.error_code)
        groups = [each.group_id for each in listed.groups]
        if cluster.versions_of(broker).get(ApiKey.OFFSET_FETCH, (0, 0))[1] < MANY_SINCE:
            for group in groups:
                yield from of_one(cluster, broker, group)
        elif groups:
            yield from of_many(cluster, broker, groups, names)


def of_one(cluster: Cluster, broker: int, group: str) -> Iterator[Committed]:
    answer = cluster.ask_broker(broker, OffsetFetchRequest(group_id=group, topics=None), OffsetFetchResponse)
    for topic in answer.topics:
        for each in topic.partitions:
            yield group, TopicPartition(topic.name, each.partition_index), each.committed_offset


def of_many(cluster: Cluster, broker: int, groups: Iterable[str], names: Mapping[bytes, str]) -> Iterator[Committed]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=None) for group in groups])
    answer = cluster.ask_broker(broker, request, OffsetFetchResponse)
    for group in answer.groups:
        for topic in group.topics:
            name = topic.name or names.get(topic.topic_id, "")
            for each in topic.partitions:
                yield group.group_id, TopicPartition(name, each.partition_index), each.committed_offset
