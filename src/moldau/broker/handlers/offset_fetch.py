"""OffsetFetch, v1 to v10: what groups have committed.

v2 asks for all topics with null, v5 adds the leader epoch, v7 can ask for offsets that no open transaction will change,
v8 asks for many groups, v9 names the member and v10 names topics by id.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn, refuse_repetition
from moldau.broker.rights import DESCRIBE, GROUP, TOPIC
from moldau.controller.image import ClusterImage
from moldau.coordinator.long_work import chunks
from moldau.core.decision import Decision, Slices, sliced
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_OFFSET, ZERO_UUID
from moldau.groups.records import CommittedOffset
from moldau.groups.shard import GroupShard
from moldau.groups.view import fetched
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
TOPICS_AT_ONCE_MAX = 400  # a thousand of them are a millisecond or two
JUDGED_AT_ONCE_MAX = 50  # of which each may be a line in the audit log


@api(ApiKey.OFFSET_FETCH, OffsetFetchRequest, versions=(1, 10))
def offset_fetch(
    request: OffsetFetchRequest, context: Context
) -> OffsetFetchResponse | Future[OffsetFetchResponse | Encoded[OffsetFetchResponse]]:
    groups = request.groups if context.version >= MANY_GROUPS_SINCE else [_only_group(request)]
    refuse_repetition([group.group_id for group in groups])
    return in_turn(
        groups,
        lambda group: _fetch(group, context, require_stable=request.require_stable),
        lambda found: _response([each.response() for each in found], context.version),
        context,
        rows=lambda found: sum([each.rows for each in found]),
    )


class FoundTopic(NamedTuple):
    """What is known of a topic at one moment, to be put into words later."""

    asked: OffsetFetchRequestTopics
    committed: Mapping[int, CommittedOffset] = MappingProxyType({})
    unstable: Set[int] = frozenset()
    error: ErrorCode = ErrorCode.NONE

    def response(self) -> OffsetFetchResponseTopics:
        asked = self.asked
        if self.error is not ErrorCode.NONE:
            return _refused(asked, self.error)
        found = fetched(
            self.committed, asked.name, asked.partition_indexes, topic_id=asked.topic_id, unstable=self.unstable
        )
        found.topic_id = asked.topic_id
        return found


class Found(NamedTuple):
    group_id: str
    topics: Sequence[FoundTopic]
    error: ErrorCode = ErrorCode.NONE

    @property
    def rows(self) -> int:
        return sum([1 + len(each.asked.partition_indexes) for each in self.topics])

    def response(self) -> OffsetFetchResponseGroup:
        topics = [each.response() for each in self.topics]
        return OffsetFetchResponseGroup(group_id=self.group_id, error_code=self.error, topics=topics)


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = request.topics
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics],
    )


def _fetch(group: OffsetFetchRequestGroup, context: Context, *, require_stable: bool) -> Found | Future[Found]:
    image = context.services.controller.image
    by_id = context.version >= IDS_SINCE

    def decide(shard: GroupShard, _: int) -> Decision[Found]:
        error = shard.check_fetch(group.group_id, group.member_id, group.member_epoch)
        if error is not ErrorCode.NONE:
            return Decision.reply_only(failed(error))
        return sliced(find(shard))

    def find(shard: GroupShard) -> Slices[Found]:
        """Some topics after the other, each as it is at its moment."""
        found: list[FoundTopic] = []
        count = TOPICS_AT_ONCE_MAX if context.services.authorization is None else JUDGED_AT_ONCE_MAX
        for some in chunks(_topics(shard, group, image, by_id=by_id), count):
            if found:
                yield Decision.reply_only(Found(group.group_id, ()))
            denied = context.denied(DESCRIBE, TOPIC, (each.name for each in some if not isinstance(each, FoundTopic)))
            found += _found_all(shard, group, some, denied, require_stable=require_stable)
        return Decision.reply_only(Found(group.group_id, found))

    def failed(error: ErrorCode) -> Found:
        topics = (
            [FoundTopic(topic, error=error) for topic in group.topics or ()] if context.version < ERROR_SINCE else []
        )
        return Found(group.group_id, topics, error)

    if not context.may(DESCRIBE, GROUP, group.group_id):
        return failed(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.services.groups.write(group.group_id, decide, failed)


def _found_all(
    shard: GroupShard,
    group: OffsetFetchRequestGroup,
    topics: list[OffsetFetchRequestTopics | FoundTopic],
    denied: Set[str],
    *,
    require_stable: bool,
) -> Iterator[FoundTopic]:
    """What the client may not know of is refused where it is named, and left out where all topics are asked for."""
    for topic in topics:
        if isinstance(topic, FoundTopic):
            yield topic
        elif topic.name not in denied:
            yield _found(shard, group, topic, require_stable)
        elif group.topics is not None:
            yield FoundTopic(topic, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _found(
    shard: GroupShard, group: OffsetFetchRequestGroup, topic: OffsetFetchRequestTopics, require_stable: bool
) -> FoundTopic:
    group_id, name = group.group_id, topic.name
    committed = dict(shard.offsets_of(group_id).get(name, {}))
    unstable: Set[int] = frozenset()
    if require_stable and shard.pending.of_group(group_id):
        unstable = {index for index in topic.partition_indexes if shard.pending.has(group_id, name, index)}
    return FoundTopic(topic, committed, unstable)


def _topics(
    shard: GroupShard, group: OffsetFetchRequestGroup, image: ClusterImage, *, by_id: bool
) -> Iterator[OffsetFetchRequestTopics | FoundTopic]:
    """The topics to answer for, with name and id, or the answer itself for one that isn't there; by default all."""
    if group.topics is None:
        for name in list(shard.offsets_of(group.group_id)):
            known, committed = image.topics.get(name), shard.offsets_of(group.group_id).get(name)
            if committed is not None and (known is not None or not by_id):
                topic_id = ZERO_UUID if known is None else known.id
                yield OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=list(committed))
        return
    for topic in group.topics:
        known = image.topic_by_id(topic.topic_id) if by_id else image.topics.get(topic.name)
        if known is not None:
            yield replace(topic, name=known.name, topic_id=known.id)
        else:
            yield FoundTopic(topic, error=ErrorCode.UNKNOWN_TOPIC_ID) if by_id else topic


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
