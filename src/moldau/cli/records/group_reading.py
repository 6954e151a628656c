"""Topics are read as a member of a group, whose offsets are committed: by librdkafka."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from moldau.cli.failures import CommandFailed
from moldau.cli.librdkafka import Outage, kafka_error, open_client, reason, topic_failure
from moldau.cli.records.printing import Sink
from moldau.cli.records.reading import LOOK_S, POLL_S, Idle
from moldau.cli.records.selection import Selection
from moldau.client.cluster import Cluster, NoAnswer
from moldau.client.fetched import FetchedRecord

BATCH_RECORDS_MAX = 1_000
APPEND_TIME, NO_TIME = 2, 0  # librdkafka's numbers of kinds of timestamps


@dataclass(frozen=True, slots=True)
class Membership:
    """How a group is read; a pattern is looked at again and again, as the cluster's topics change."""

    selection: Selection
    exits_at_end: bool = False
    idle_s_max: float | None = None


def read_as_member(
    cluster: Cluster, config: Mapping[str, object], membership: Membership, sink: Sink, outage: Outage
) -> None:
    """Offsets are committed of what the sink took and flushed, at the latest when this ends."""
    consumer: Consumer = open_client(Consumer, dict(config))
    try:
        _Member(cluster, consumer, membership, sink, outage).run()
    finally:
        consumer.close()


class _Member:
    def __init__(
        self, cluster: Cluster, consumer: Consumer, membership: Membership, sink: Sink, outage: Outage
    ) -> None:
        self.cluster = cluster
        self.consumer = consumer
        self.membership = membership
        self.sink = sink
        self.outage = outage
        self.topics: list[str] = []
        self.assigned: set[tuple[str, int]] | None = None
        self.at_end: set[tuple[str, int]] = set()
        self.look_at_s = 0.0

    def run(self) -> None:
        self._subscribe(sorted(self._look()))
        last_s = time.monotonic()
        while not self.sink.is_full and not self._is_at_end():
            messages = self._next_messages()
            records = [message for message in messages if self._is_record(message)]
            taken = [message for message in records if self._take(message)]
            self.sink.flush()
            # Only now: what a full disk refused is for whoever reads next.
            for message in taken:
                self._store(message)
            if messages:
                self.outage.on_answer()
            if records:
                last_s = time.monotonic()
            elif self.membership.idle_s_max is not None and time.monotonic() - last_s > self.membership.idle_s_max:
                raise Idle
            if self.membership.selection.pattern is not None and time.monotonic() >= self.look_at_s:
                self._follow_pattern()

    def _look(self) -> Sequence[str]:
        found = self.membership.selection.look(self.cluster)
        if not self.membership.selection.may_create:
            self.membership.selection.check(found)
        self.look_at_s = time.monotonic() + LOOK_S
        return [*found.topics] if self.membership.selection.pattern else self.membership.selection.names

    def _follow_pattern(self) -> None:
        try:
            found = sorted(self._look())
        except NoAnswer:
            return
        if found != self.topics:
            self._subscribe(found)

    def _subscribe(self, topics: list[str]) -> None:
        self.topics = topics
        if topics:
            self.consumer.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        self.assigned = {(place.topic, place.partition) for place in places}

    def _on_revoke(self, _consumer: Consumer, places: list[TopicPartition]) -> None:
        gone = {(place.topic, place.partition) for place in places}
        self.assigned = (self.assigned or set()) - gone
        self.at_end -= gone

    def _is_at_end(self) -> bool:
        if not self.membership.exits_at_end:
            return False
        return not self.topics or (self.assigned is not None and self.assigned <= self.at_end)

    def _next_messages(self) -> list[Any]:
        """Waits for one and takes those that are there with it: waiting for many would hold the first one back."""
        try:
            first = self.consumer.poll(POLL_S)
            if first is None:
                return []
            return [first, *self.consumer.consume(BATCH_RECORDS_MAX, timeout=0)]
        except KafkaException as wrong:
            raise CommandFailed(reason(wrong)) from None

    def _is_record(self, message: Any) -> bool:
        error = message.error()
        place = (message.topic(), message.partition())
        if error is None:
            self.at_end.discard(place)
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self.at_end.add(place)
            return False
        if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC) and (
            self.membership.selection.pattern is not None or self.membership.selection.may_create
        ):
            print(f"moldau: {error.str()}", file=sys.stderr)
            return False
        raise CommandFailed(topic_failure(message.topic() or self.topics[0], error))

    def _take(self, message: Any) -> bool:
        if self.sink.is_full:
            return False  # read ahead, and left to whoever reads next
        self.sink.take(record_of(message))
        return True

    def _store(self, message: Any) -> None:
        try:
            self.consumer.store_offsets(message=message)
        except KafkaException as wrong:
            if kafka_error(wrong).code() != KafkaError._STATE:  # the partition went to another member
                raise


def record_of(message: Any) -> FetchedRecord:
    kind, timestamp_ms = message.timestamp()
    return FetchedRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp_ms if kind != NO_TIME else -1,
        kind == APPEND_TIME,
        -1 if message.leader_epoch() is None else message.leader_epoch(),
        message.key(),
        message.value(),
        tuple(_headers(message)),
    )


def _headers(message: Any) -> Iterator[tuple[bytes, bytes | None]]:
    for name, value in message.headers() or ():
        yield name.encode(), value
