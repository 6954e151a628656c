"""WriteTxnMarkers, v1 and v2: write the end of transactions into partitions.

Coordinators on other brokers ask for it, and administrators who end a transaction that hangs. v2 says which protocol
the transaction is of.
"""

from __future__ import annotations

from asyncio import Future

from moldau.broker.answers import refuse_repetition, together
from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.transactions.markers_due import MarkersDue
from moldau.transactions.transaction import ProducerIdAndEpoch
from moldau.wire.api import ApiKey
from moldau.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

# A coordinator of transactions knows nothing of the groups' one, which is only not ready.
_TOLD = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


@api(ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest, versions=(1, 2), parts=(("markers", "markers"),))
def write_txn_markers(
    request: WriteTxnMarkersRequest, context: Context
) -> WriteTxnMarkersResponse | Future[WriteTxnMarkersResponse]:
    return together(
        [_write(marker, context) for marker in request.markers],
        lambda results: WriteTxnMarkersResponse(markers=results),
    )


def _write(marker: WritableTxnMarker, context: Context) -> WritableTxnMarkerResult | Future[WritableTxnMarkerResult]:
    partitions = [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
    refuse_repetition(partitions)
    due = MarkersDue(
        transactional_id="",
        producer=ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch),
        is_commit=marker.transaction_result,
        partitions=frozenset(partitions),
        transaction_version=marker.transaction_version,
    )
    markers = context.services.markers

    def shape(errors: list[ErrorCode]) -> WritableTxnMarkerResult:
        topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
        for partition, error in zip(partitions, errors, strict=True):
            result = WritableTxnMarkerPartitionResult(partition.partition, _TOLD.get(error, error))
            topics.setdefault(partition.topic, []).append(result)
        return WritableTxnMarkerResult(
            marker.producer_id, [WritableTxnMarkerTopicResult(name, results) for name, results in topics.items()]
        )

    return together([markers.write(each, due, marker.coordinator_epoch) for each in partitions], shape)
