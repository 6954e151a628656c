"""AssignReplicasToDirs: a broker tells the controller which of its replicas are in a log directory that failed."""

from __future__ import annotations

from itertools import islice

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, Encoded, encoded, in_thread
from moldau.broker.requests.decisions import decided
from moldau.controller.members.failed_directories import ReplicaInDirectory, decide_assign_replicas_to_dirs
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicId
from moldau.wire.api import ApiKey
from moldau.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)


@api(ApiKey.ASSIGN_REPLICAS_TO_DIRS, AssignReplicasToDirsRequest, versions=(0, 0))
async def assign_replicas_to_dirs(
    request: AssignReplicasToDirsRequest, context: Context
) -> AssignReplicasToDirsResponse | Encoded[AssignReplicasToDirsResponse]:
    context.exempt()
    rows = sum([1 + len(topic.partitions) for directory in request.directories for topic in directory.topics])
    is_large = rows + len(request.directories) > ROWS_MAX
    replicas = await in_thread(lambda: _replicas(request), context) if is_large else _replicas(request)
    try:
        errors = await decided(
            context.services.controller,
            replicas,
            lambda image, some: decide_assign_replicas_to_dirs(
                image, request.broker_id, request.broker_epoch, some, config=context.services.config
            ),
        )
    except ApiError as wrong:
        return AssignReplicasToDirsResponse(error_code=wrong.code)
    if is_large:
        return await encoded(lambda: _response(request, errors), context)
    return _response(request, errors)


def _replicas(request: AssignReplicasToDirsRequest) -> list[ReplicaInDirectory]:
    return [
        ReplicaInDirectory(directory.id, TopicId(topic.topic_id), each.partition_index)
        for directory in request.directories
        for topic in directory.topics
        for each in topic.partitions
    ]


def _response(request: AssignReplicasToDirsRequest, errors: list[ErrorCode]) -> AssignReplicasToDirsResponse:
    left = iter(errors)
    return AssignReplicasToDirsResponse(
        directories=[
            DirectoryData(
                id=directory.id,
                topics=[
                    TopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            PartitionData(each.partition_index, error)
                            for each, error in zip(topic.partitions, islice(left, len(topic.partitions)), strict=True)
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )
