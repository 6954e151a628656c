"""WriteTxnMarkers, v1 and v2: write the end of transactions into partitions.

Coordinators on other brokers ask for it, and administrators who end a transaction that hangs. v2 says which protocol
the transaction is of.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Iterator
from typing import NamedTuple

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, in_turn, refuse_repetition
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


@api(ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest, versions=(1, 2))
def write_txn_markers(
    request: WriteTxnMarkersRequest, context: Context
) -> WriteTxnMarkersResponse | Future[WriteTxnMarkersResponse | Encoded[WriteTxnMarkersResponse]]:
    context.exempt()
    for marker in request.markers:
        refuse_repetition([topic.name for topic in marker.topics])
        for topic in marker.topics:
            refuse_repetition(topic.partition_indexes)
    markers = context.services.markers

    def shape(errors: list[ErrorCode]) -> WriteTxnMarkersResponse:
        left = iter(errors)
        return WriteTxnMarkersResponse(
            markers=[_result(marker, left) for marker in request.markers],
        )

    return in_turn(_ends(request), lambda end: markers.write(end.where, end.due, end.coordinator_epoch), shape, context)


class End(NamedTuple):
    """A transaction's, in one partition."""

    where: TopicPartition
    due: MarkersDue
    coordinator_epoch: int


def _ends(request: WriteTxnMarkersRequest) -> Iterator[End]:
    for marker in request.markers:
        due = MarkersDue(
            transactional_id="",
            producer=ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch),
            is_commit=marker.transaction_result,
            partitions=frozenset(),  # each is written to below
            transaction_version=marker.transaction_version,
        )
        for topic in marker.topics:
            for index in topic.partition_indexes:
                yield End(TopicPartition(topic.name, index), due, marker.coordinator_epoch)


def _result(marker: WritableTxnMarker, errors: Iterator[ErrorCode]) -> WritableTxnMarkerResult:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for topic in marker.topics:
        for index in topic.partition_indexes:
            error = next(errors)
            result = WritableTxnMarkerPartitionResult(index, _TOLD.get(error, error))
            topics.setdefault(topic.name, []).append(result)
    return WritableTxnMarkerResult(
        marker.producer_id, [WritableTxnMarkerTopicResult(name, results) for name, results in topics.items()]
    )
