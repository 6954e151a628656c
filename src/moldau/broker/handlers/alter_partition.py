"""AlterPartition: a leader tells the controller of its ISR. v2 names brokers, v3 their epochs, too."""

from __future__ import annotations

from itertools import islice

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import ROWS_MAX, Encoded, encoded, in_thread
from moldau.broker.requests.decisions import decided
from moldau.controller.partitions.isr_changes import AlteredPartition, InSync, WantedIsr, decide_alter_partition
from moldau.core.errors import ApiError
from moldau.core.ids import TopicId
from moldau.wire.api import ApiKey
from moldau.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrOfPartition,
    PartitionData,
    TopicData,
)

EPOCHS_SINCE = 3


@api(ApiKey.ALTER_PARTITION, AlterPartitionRequest, versions=(2, 3))
async def alter_partition(
    request: AlterPartitionRequest, context: Context
) -> AlterPartitionResponse | Encoded[AlterPartitionResponse]:
    context.exempt()
    rows = sum([1 + len(topic.partitions) for topic in request.topics])
    is_large = rows > ROWS_MAX
    wanted = await in_thread(lambda: _wanted(request, context), context) if is_large else _wanted(request, context)
    try:
        altered = await decided(
            context.services.controller,
            wanted,
            lambda image, some: decide_alter_partition(
                image, request.broker_id, request.broker_epoch, some, config=context.services.config
            ),
        )
    except ApiError as wrong:
        return AlterPartitionResponse(error_code=wrong.code)
    if is_large:
        return await encoded(lambda: _response(request, altered), context)
    return _response(request, altered)


def _wanted(request: AlterPartitionRequest, context: Context) -> list[WantedIsr]:
    return [
        WantedIsr(
            topic_id=TopicId(topic.topic_id),
            partition=each.partition_index,
            leader_epoch=each.leader_epoch,
            partition_epoch=each.partition_epoch,
            isr=_isr(each, context.version),
            leader_recovery_state=each.leader_recovery_state,
        )
        for topic in request.topics
        for each in topic.partitions
    ]


def _isr(wanted: IsrOfPartition, version: int) -> tuple[InSync, ...]:
    if version < EPOCHS_SINCE:
        return tuple(InSync(broker_id) for broker_id in wanted.new_isr)
    return tuple(InSync(each.broker_id, each.broker_epoch) for each in wanted.new_isr_with_epochs)


def _response(request: AlterPartitionRequest, altered: list[AlteredPartition]) -> AlterPartitionResponse:
    left = iter(altered)
    return AlterPartitionResponse(
        topics=[
            TopicData(
                topic_id=topic.topic_id, partitions=[_partition(each) for each in islice(left, len(topic.partitions))]
            )
            for topic in request.topics
        ]
    )


def _partition(altered: AlteredPartition) -> PartitionData:
    state = altered.state
    if state is None:
        return PartitionData(partition_index=altered.partition, error_code=altered.error)
    return PartitionData(
        partition_index=altered.partition,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        leader_recovery_state=state.leader_recovery_state,
        partition_epoch=state.partition_epoch,
    )
