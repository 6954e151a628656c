"""DescribeTopicPartitions: topics in the order of their names, page by page.

A page ends when it holds as many partitions as the client or the broker allows; the cursor says where the next begins.
"""

from __future__ import annotations

from moldau.broker.api import Answer, api
from moldau.broker.authorized_operations import ON_TOPIC
from moldau.broker.context import Context
from moldau.broker.leaders import offline_replicas
from moldau.broker.requests.answers import Encoded, by_size
from moldau.broker.rights import DESCRIBE, TOPIC, operations_on_topic
from moldau.controller.image import ClusterImage, TopicImage
from moldau.coordinator.long_work import in_slices
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER
from moldau.core.topic_names import is_internal, topic_name_problem
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

ROWS_EACH = 4  # a topic or a partition here takes as long as so many rows of other responses


@api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, DescribeTopicPartitionsRequest, versions=(0, 0))
def describe_topic_partitions(request: DescribeTopicPartitionsRequest, context: Context) -> Answer:
    image = context.services.image
    limit = min(context.services.config.int("max.request.partition.size.limit"), request.response_partition_limit)
    if context.services.authorization is not None:
        return _page_of_allowed(request, image, context, partitions_max=max(limit, 1))
    names = [topic.name for topic in request.topics] or list(image.topics)
    there = sum([len(topic.partitions) for name in names if (topic := image.topics.get(name)) is not None])
    rows = ROWS_EACH * (len(names) + min(limit, there))
    return by_size(lambda: _response(request, image, partitions_max=max(limit, 1)), rows, context)


def _response(
    request: DescribeTopicPartitionsRequest, image: ClusterImage, *, partitions_max: int
) -> DescribeTopicPartitionsResponse:
    names = _names(request, image)
    if names is None:
        return _refused(request)
    return _page(image, names, start=request.cursor or Cursor(), partitions_max=partitions_max)


def _names(request: DescribeTopicPartitionsRequest, image: ClusterImage) -> list[str] | None:
    """From the cursor on; None for a cursor that points nowhere."""
    asked = {topic.name for topic in request.topics}
    start = request.cursor or Cursor()
    if request.cursor is not None and (start.partition_index < 0 or (asked and start.topic_name not in asked)):
        return None
    return sorted(name for name in asked or image.topics if name >= start.topic_name)


async def _page_of_allowed(
    request: DescribeTopicPartitionsRequest, image: ClusterImage, context: Context, *, partitions_max: int
) -> DescribeTopicPartitionsResponse | Encoded[DescribeTopicPartitionsResponse]:
    """Of the topics that the client may describe, so many as the page holds and the next one, if there is any."""
    names = _names(request, image)
    if names is None:
        return _refused(request)
    operations: dict[str, int] = {}
    hidden: list[str] = []
    left = partitions_max
    async for name in in_slices(names, context.services.long_work):
        if not context.may(DESCRIBE, TOPIC, name):
            hidden.append(name)
            continue
        operations[name] = operations_on_topic(context, name)
        if left <= 0:
            break
        topic = image.topics.get(name)
        left -= 0 if topic is None else len(topic.partitions)
    start = request.cursor or Cursor()

    def shape() -> DescribeTopicPartitionsResponse:
        response = _page(image, [*operations], start=start, partitions_max=partitions_max)
        for topic in response.topics:
            topic.topic_authorized_operations = operations[topic.name or ""]
        response.topics += [
            DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
            for name in hidden
            if request.topics
        ]
        return response

    rows = ROWS_EACH * (len(operations) + len(hidden) + partitions_max - max(left, 0))
    answer = by_size(shape, rows, context)
    return answer if isinstance(answer, DescribeTopicPartitionsResponse) else await answer


def _page(
    image: ClusterImage, names: list[str], *, start: Cursor, partitions_max: int
) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse()
    left = partitions_max
    for name in names:
        first = start.partition_index if name == start.topic_name else 0
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            break
        topic = image.topics.get(name)
        if topic is None:
            response.topics.append(_unknown(name))
            continue
        described = _describe(image, topic, indexes=range(first, min(first + left, len(topic.partitions))))
        response.topics.append(described)
        left -= len(described.partitions)
        if first + len(described.partitions) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=first + len(described.partitions))
            break
    return response


def _describe(image: ClusterImage, topic: TopicImage, *, indexes: range) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(image, topic, index) for index in indexes],
        topic_authorized_operations=ON_TOPIC,
    )


def _partition(image: ClusterImage, topic: TopicImage, index: int) -> DescribeTopicPartitionsResponsePartition:
    partition = topic.partitions[index]
    is_led = partition.leader in image.brokers
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader if is_led else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(partition, image),
    )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    is_legal = topic_name_problem(name) is None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        topic_authorized_operations=ON_TOPIC,
    )


def _refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """A cursor that points nowhere: the client made it up."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
            for topic in request.topics
        ]
    )
