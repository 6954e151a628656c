"""What the tool asks of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice

from moldau.cli.failures import CommandFailed
from moldau.cli.wire import refusal
from moldau.client.cluster import Cluster, CoordinatorKind, Refused, words_of
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from moldau.wire.messages.describe_producers import ProducerState, TopicRequest
from moldau.wire.messages.describe_transactions import TransactionState
from moldau.wire.messages.list_transactions import TransactionState as Listed
from moldau.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic

TIMEOUT_MS = 30_000  # what Apache Kafka's client says of transactions that nobody will begin
BATCH_MAX = 500  # partitions in one request: a broker is not to be overwhelmed
UNKNOWN_ID = "{} request for transactionalId `{}` failed because the ID could not be found"


def failed(what: str, why: str) -> CommandFailed:
    return CommandFailed(f"{what}: {why}")


def listed(client: Cluster, request: ListTransactionsRequest) -> list[tuple[int, Listed]]:
    """Each with the broker that coordinates it."""
    found: list[tuple[int, Listed]] = []
    for broker_id in client.nodes():
        answer = client.ask_broker(broker_id, request, ListTransactionsResponse)
        if answer.error_code != ErrorCode.NONE:
            raise failed(
                "Failed to list transactions",
                f"ListTransactions request sent to broker {broker_id} failed with an unexpected exception",
            )
        found += [(broker_id, each) for each in answer.transaction_states]
    return found


def described(client: Cluster, transactional_id: str) -> tuple[int, TransactionState]:
    """With the broker that coordinates it. Refused if there is no such id."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    kind = CoordinatorKind.TRANSACTION
    answer = client.ask_coordinator(
        kind,
        transactional_id,
        request,
        DescribeTransactionsResponse,
        codes=lambda found: [each.error_code for each in found.transaction_states],
    )
    state = answer.transaction_states[0]
    if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise Refused(state.error_code, UNKNOWN_ID.format("DescribeTransactions", transactional_id))
    if state.error_code != ErrorCode.NONE:
        raise Refused(state.error_code)
    return client.coordinator(kind, transactional_id), state


def producers(
    client: Cluster, places: Iterable[TopicPartition], *, broker_id: int | None
) -> dict[TopicPartition, list[ProducerState]]:
    """As the leaders remember them, or this broker. Refused if one cannot say."""
    found: dict[TopicPartition, list[ProducerState]] = {}
    rest = iter(places)
    while batch := list(islice(rest, BATCH_MAX)):
        if broker_id is None:
            led, unled = client.led(batch)
            if unled:
                raise Refused(next(iter(unled.values())))
        else:
            led = {broker_id: batch}
        for broker, own in led.items():
            found |= _producers_of(client, broker, own)
    return found


def _producers_of(
    client: Cluster, broker_id: int, places: Collection[TopicPartition]
) -> dict[TopicPartition, list[ProducerState]]:
    topics: dict[str, list[int]] = {}
    for place in places:
        topics.setdefault(place.topic, []).append(place.partition)
    request = DescribeProducersRequest(topics=[TopicRequest(*each) for each in topics.items()])
    answer = client.ask_broker(broker_id, request, DescribeProducersResponse)
    found: dict[TopicPartition, list[ProducerState]] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            if each.error_code != ErrorCode.NONE:
                raise Refused(each.error_code, refusal(each.error_code, each.error_message))
            found[TopicPartition(topic.name, each.partition_index)] = each.active_producers
    return found


def abort(
    client: Cluster, place: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> None:
    """By a marker that says so, of whoever is its coordinator. Refused if the leader does not write it."""
    marker = WritableTxnMarker(
        producer_id, producer_epoch, False, [WritableTxnMarkerTopic(place.topic, [place.partition])], coordinator_epoch
    )
    led, unled = client.led([place])
    for code in unled.values():
        raise Refused(code)
    answer = client.ask_broker(next(iter(led)), WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse)
    for result in answer.markers:
        for topic in result.topics:
            for each in topic.partitions:
                if each.error_code != ErrorCode.NONE:
                    raise Refused(each.error_code, _why_not(each.error_code, place, marker))


def _why_not(code: int, place: TopicPartition, marker: WritableTxnMarker) -> str:
    told: Mapping[int, str] = {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "WriteTxnMarkers request with {} failed due to cluster"
        " authorization error",
        ErrorCode.INVALID_PRODUCER_EPOCH: "WriteTxnMarkers request with {} failed due an invalid producer epoch",
        ErrorCode.TRANSACTION_COORDINATOR_FENCED: "WriteTxnMarkers request with {} failed since the provided"
        " coordinator epoch {epoch} has been fenced by the active coordinator",
    }
    spec = abort_words(place, marker.producer_id, marker.producer_epoch, marker.coordinator_epoch)
    return told.get(code, words_of(code)).format(spec, epoch=marker.coordinator_epoch)


def abort_words(place: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> str:
    return (
        f"AbortTransactionSpec(topicPartition={place}, producerId={producer_id}, producerEpoch={producer_epoch},"
        f" coordinatorEpoch={coordinator_epoch})"
    )


def terminate(client: Cluster, transactional_id: str) -> None:
    """A new epoch of the producer ends whatever it was doing, as if it had begun anew."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS)
    answer = client.ask_coordinator(
        CoordinatorKind.TRANSACTION,
        transactional_id,
        request,
        InitProducerIdResponse,
        codes=lambda found: [_passing(found.error_code)],
    )
    if answer.error_code != ErrorCode.NONE:
        raise Refused(answer.error_code)


def _passing(code: int) -> int:
    """The end of the transaction is on its way to the partitions: the same as a coordinator that is not there yet."""
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if code == ErrorCode.CONCURRENT_TRANSACTIONS else code
