"""ListPartitionReassignments: partitions that have replicas to gain or to lose."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.broker.api import Answer, api
from moldau.broker.context import Context
from moldau.broker.requests.answers import by_size
from moldau.controller.image import TopicImage
from moldau.wire.api import ApiKey
from moldau.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


@api(ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest, versions=(0, 0), forwarded=True)
def list_partition_reassignments(request: ListPartitionReassignmentsRequest, context: Context) -> Answer:
    topics = context.services.controller.image.topics
    if request.topics is None:
        rows = sum([1 + len(topic.partitions) for topic in topics.values()])
    else:
        rows = sum([1 + len(topic.partition_indexes) for topic in request.topics])
    return by_size(lambda: _response(request, topics), rows, context)


def _response(
    request: ListPartitionReassignmentsRequest, topics: Mapping[str, TopicImage]
) -> ListPartitionReassignmentsResponse:
    if request.topics is None:
        found = [_ongoing(topic, list(range(len(topic.partitions)))) for topic in topics.values()]
    else:
        found = [_ongoing(topics[each.name], each.partition_indexes) for each in request.topics if each.name in topics]
    return ListPartitionReassignmentsResponse(error_message=None, topics=[topic for topic in found if topic.partitions])


def _ongoing(topic: TopicImage, indexes: list[int]) -> OngoingTopicReassignment:
    asked = ((index, topic.partitions[index]) for index in indexes if 0 <= index < len(topic.partitions))
    return OngoingTopicReassignment(
        name=topic.name,
        partitions=[
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding_replicas),
                removing_replicas=list(state.removing_replicas),
            )
            for index, state in asked
            if state.adding_replicas or state.removing_replicas
        ],
    )
