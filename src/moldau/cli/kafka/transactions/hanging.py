"""Transactions that are open in a partition although no coordinator knows of them: nobody will end them."""

from __future__ import annotations

from argparse import Namespace
from typing import NamedTuple

from moldau.cli.failures import OK, UsageError
from moldau.cli.kafka.bootstrap import open_patiently
from moldau.cli.kafka.tables import print_pretty_table
from moldau.cli.kafka.transactions import asking
from moldau.client.cluster import Cluster, Refused, check
from moldau.core.clock import SystemClock
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages import ListTransactionsRequest
from moldau.wire.messages.describe_producers import ProducerState

HEADS = (
    *("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp"),
    "Duration(min)",
)
MINUTE_MS = 60_000


class Open(NamedTuple):
    place: TopicPartition
    producer: ProducerState


def find_hanging(options: Namespace) -> int:
    if options.topic is None and options.broker_id is None:
        raise UsageError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if options.partition is not None and options.topic is None:
        raise UsageError("The --partition argument requires --topic to be provided")
    with open_patiently(options) as client:
        candidates = _open_transactions(client, options, _places(client, options))
        hanging = _hanging(client, candidates) if candidates else []
    now_ms = SystemClock().now_ms()
    rows = [
        [
            *(place.topic, str(place.partition), str(each.producer_id), str(each.producer_epoch)),
            *(str(each.coordinator_epoch), str(each.current_txn_start_offset), str(each.last_timestamp)),
            str((now_ms - each.last_timestamp) // MINUTE_MS),
        ]
        for place, each in hanging
    ]
    print_pretty_table(HEADS, rows)
    return OK


def _places(client: Cluster, options: Namespace) -> list[TopicPartition]:
    if options.partition is not None:
        return [TopicPartition(options.topic, options.partition)]
    found = client.metadata(None if options.topic is None else [options.topic])
    places = []
    for topic in found.topics:
        try:
            check(topic.error_code)
        except Refused as wrong:
            raise asking.failed(f"Failed to describe {len(found.topics)} topics", str(wrong)) from None
        places += [
            TopicPartition(topic.name or "", each.partition_index)
            for each in topic.partitions
            if options.broker_id is None or options.broker_id in each.replica_nodes
        ]
    return places


def _open_transactions(client: Cluster, options: Namespace, places: list[TopicPartition]) -> list[Open]:
    """Those that are older than any transaction should be."""
    try:
        found = asking.producers(client, places, broker_id=options.broker_id)
    except Refused as wrong:
        told = f"Failed to describe producers for {len(places)} partitions on broker {options.broker_id}"
        raise asking.failed(told, str(wrong)) from None
    since_ms = SystemClock().now_ms() - options.max_transaction_timeout * MINUTE_MS
    return [
        Open(place, each)
        for place, producers in sorted(found.items())
        for each in producers
        if each.current_txn_start_offset >= 0 and each.last_timestamp < since_ms
    ]


def _hanging(client: Cluster, candidates: list[Open]) -> list[Open]:
    """A coordinator names all partitions that it still has to write a marker to."""
    ids = sorted({each.producer.producer_id for each in candidates})
    request = ListTransactionsRequest(producer_id_filters=ids)
    names = {each.producer_id: each.transactional_id for _, each in asking.listed(client, request)}
    known = {producer_id: _partitions(client, names[producer_id]) for producer_id in ids if producer_id in names}
    return [each for each in candidates if each.place not in known.get(each.producer.producer_id, set())]


def _partitions(client: Cluster, transactional_id: str) -> set[TopicPartition]:
    try:
        _, state = asking.described(client, transactional_id)
    except Refused as wrong:
        if wrong.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return set()
        raise asking.failed("Failed to describe 1 transactions", str(wrong)) from None
    return {TopicPartition(topic.topic, each) for topic in state.topics for each in topic.partitions}
