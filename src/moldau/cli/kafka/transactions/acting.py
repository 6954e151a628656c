"""`moldau transactions`: what transactions there are, which of them hang, and an end for those."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.kafka.bootstrap import open_patiently
from moldau.cli.kafka.tables import print_pretty_table
from moldau.cli.kafka.transactions import asking
from moldau.client.cluster import Cluster, Refused
from moldau.core.clock import SystemClock
from moldau.core.ids import TopicPartition
from moldau.wire.messages import ListTransactionsRequest

LISTED = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBED = (
    *("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState", "TransactionTimeoutMs"),
    *("CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions"),
)
PRODUCERS = (
    *("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp"),
    "CurrentTransactionStartOffset",
)
NONE = "None"


def list_transactions(options: Namespace) -> int:
    request = ListTransactionsRequest(
        duration_filter=options.duration_filter, transactional_id_pattern=options.transactional_id_pattern
    )
    with open_patiently(options) as client:
        found = asking.listed(client, request)
    rows = [
        [each.transactional_id, str(broker_id), str(each.producer_id), each.transaction_state]
        for broker_id, each in found
    ]
    print_pretty_table(LISTED, rows)
    return OK


def describe(options: Namespace) -> int:
    name = options.transactional_id
    with open_patiently(options) as client:
        try:
            coordinator, state = asking.described(client, name)
        except Refused as wrong:
            raise asking.failed(
                f"Failed to describe transaction state of transactional-id `{name}`", str(wrong)
            ) from None
    start_ms = state.transaction_start_time_ms
    duration = NONE if start_ms < 0 else str(SystemClock().now_ms() - start_ms)
    places = ",".join(str(TopicPartition(topic.topic, each)) for topic in state.topics for each in topic.partitions)
    row = [
        *(str(coordinator), name, str(state.producer_id), str(state.producer_epoch), state.transaction_state),
        *(str(state.transaction_timeout_ms), NONE if start_ms < 0 else str(start_ms), duration, places),
    ]
    print_pretty_table(DESCRIBED, [row])
    return OK


def describe_producers(options: Namespace) -> int:
    place = TopicPartition(options.topic, options.partition)
    with open_patiently(options) as client:
        try:
            found = asking.producers(client, [place], broker_id=options.broker_id)[place]
        except Refused as wrong:
            where = "leader" if options.broker_id is None else f"broker {options.broker_id}"
            raise asking.failed(f"Failed to describe producers for partition {place} on {where}", str(wrong)) from None
    rows = [
        [
            *(str(each.producer_id), str(each.producer_epoch), str(each.coordinator_epoch), str(each.last_sequence)),
            *(
                str(each.last_timestamp),
                NONE if each.current_txn_start_offset < 0 else str(each.current_txn_start_offset),
            ),
        ]
        for each in found
    ]
    print_pretty_table(PRODUCERS, rows)
    return OK


def abort(options: Namespace) -> int:
    place = TopicPartition(options.topic, options.partition)
    if options.start_offset is None:
        spec = _given_spec(options)
    with open_patiently(options) as client:
        if options.start_offset is not None:
            spec = _found_spec(client, place, options.start_offset)
        try:
            asking.abort(client, place, *spec)
        except Refused as wrong:
            raise asking.failed(f"Failed to abort transaction {asking.abort_words(place, *spec)}", str(wrong)) from None
    return OK


def _given_spec(options: Namespace) -> tuple[int, int, int]:
    """A producer whose coordinator never wrote a marker has an epoch of -1 for it, and 0 is not above any."""
    if options.producer_id is None:
        raise UsageError(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or"
            " with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    if options.producer_epoch is None:
        raise UsageError("Missing required argument --producer-epoch")
    if options.coordinator_epoch is None:
        raise UsageError("Missing required argument --coordinator-epoch")
    return options.producer_id, options.producer_epoch, max(options.coordinator_epoch, 0)


def _found_spec(client: Cluster, place: TopicPartition, start_offset: int) -> tuple[int, int, int]:
    try:
        found = asking.producers(client, [place], broker_id=None)[place]
    except Refused as wrong:
        raise asking.failed(f"Failed to validate producer state for partition {place}", str(wrong)) from None
    for each in found:
        if each.current_txn_start_offset == start_offset:
            return each.producer_id, each.producer_epoch, max(each.coordinator_epoch, 0)
    raise CommandFailed(f"Could not find any open transactions starting at offset {start_offset} on partition {place}")


def force_terminate(options: Namespace) -> int:
    name = options.transactional_id
    with open_patiently(options) as client:
        try:
            asking.terminate(client, name)
        except Refused as wrong:
            raise asking.failed(f"Failed to force terminate transactionalId `{name}`", str(wrong)) from None
    return OK
