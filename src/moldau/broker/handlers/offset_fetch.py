"""OffsetFetch, v1 to v10: what groups have committed.

v2 asks for all topics with null, v5 adds the leader epoch, v7 can ask for offsets that no open transaction will change,
v8 asks for many groups, v9 names the member and v10 names topics by id. Until there are transactions every offset is
stable.
"""

from __future__ import annotations

from asyncio import Future

from moldau.broker.answers import together
from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.repetition import refuse_repetition
from moldau.controller.image import ClusterImage
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.groups.shard import GroupShard
from moldau.groups.view import NO_OFFSET, fetched
from moldau.wire.api import ApiKey
from moldau.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

ERROR_SINCE = 2
MANY_GROUPS_SINCE = 8
IDS_SINCE = 10


@api(ApiKey.OFFSET_FETCH, OffsetFetchRequest, versions=(1, 10))
def offset_fetch(request: OffsetFetchRequest, context: Context) -> OffsetFetchResponse | Future[OffsetFetchResponse]:
    groups = request.groups if context.version >= MANY_GROUPS_SINCE else [_only_group(request)]
    refuse_repetition([group.group_id for group in groups])
    return together([_fetch(group, context) for group in groups], lambda found: _response(found, context.version))


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = request.topics
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics],
    )


def _fetch(
    group: OffsetFetchRequestGroup, context: Context
) -> OffsetFetchResponseGroup | Future[OffsetFetchResponseGroup]:
    image = context.services.controller.image
    by_id = context.version >= IDS_SINCE

    def decide(shard: GroupShard, _: int) -> Decision[OffsetFetchResponseGroup]:
        topics = _all_topics(shard, group, image, by_id=by_id)
        if group.topics is not None:
            topics = [_one_topic(shard, group.group_id, topic, image, by_id=by_id) for topic in group.topics]
        return Decision.reply_only(OffsetFetchResponseGroup(group_id=group.group_id, topics=topics))

    def failed(error: ErrorCode) -> OffsetFetchResponseGroup:
        topics = [_refused(topic, error) for topic in group.topics or ()] if context.version < ERROR_SINCE else []
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error, topics=topics)

    return context.services.groups.write(group.group_id, decide, failed)


def _all_topics(
    shard: GroupShard, group: OffsetFetchRequestGroup, image: ClusterImage, *, by_id: bool
) -> list[OffsetFetchResponseTopics]:
    offsets = shard.offsets_of(group.group_id)
    found = [fetched(offsets, topic, partitions) for topic, partitions in offsets.items()]
    if not by_id:
        return found
    for topic in found:
        known = image.topics.get(topic.name)
        if known is not None:
            topic.topic_id = known.id
    return [topic for topic in found if topic.name in image.topics]


def _one_topic(
    shard: GroupShard, group_id: str, topic: OffsetFetchRequestTopics, image: ClusterImage, *, by_id: bool
) -> OffsetFetchResponseTopics:
    name = topic.name
    if by_id:
        known = image.topic_by_id(topic.topic_id)
        if known is None:
            return _refused(topic, ErrorCode.UNKNOWN_TOPIC_ID)
        name = known.name
    found = fetched(shard.offsets_of(group_id), name, topic.partition_indexes)
    found.topic_id = topic.topic_id
    return found


def _refused(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, error_code=error)
            for index in topic.partition_indexes
        ],
    )


def _response(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= MANY_GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=one.partition_index,
                    committed_offset=one.committed_offset,
                    committed_leader_epoch=one.committed_leader_epoch,
                    metadata=one.metadata,
                    error_code=one.error_code,
                )
                for one in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)
