"""Topics of a test's own on a running broker, filled and read with confluent-kafka."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from moldau.spark.clients.broker_connection import BrokerConnection
from moldau.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

ANSWER_S_MAX = 30.0


@dataclass(frozen=True, slots=True)
class Row:
    """One record as a test sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Topics:
    """What a test does to the broker beside Spark."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def name(self, prefix: str = "topic") -> str:
        return f"{prefix}-{uuid.uuid4().hex[:8]}"

    def create(self, prefix: str = "topic", *, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        return self.create_named(self.name(prefix), partitions=partitions, config=config)

    def create_named(self, name: str, *, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        # Tests write records of years ago, which a broker with its defaults may delete while the test still runs.
        kept = {"retention.ms": "-1", **(config or {})}
        self.admin.create_topics([NewTopic(name, partitions, 1, config=kept)])[name].result(ANSWER_S_MAX)
        deadline = time.monotonic() + ANSWER_S_MAX
        while True:
            places = {TopicPartition(name, partition): OffsetSpec.latest() for partition in range(partitions)}
            try:
                for future in self.admin.list_offsets(places).values():
                    future.result(ANSWER_S_MAX)
                return name
            except KafkaException:
                assert time.monotonic() < deadline, f"{name} did not appear"
                time.sleep(0.05)

    def delete(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(ANSWER_S_MAX)

    def add_partitions(self, name: str, total: int) -> None:
        self.admin.create_partitions([NewPartitions(name, total)])[name].result(ANSWER_S_MAX)
        deadline = time.monotonic() + ANSWER_S_MAX
        while len(self.admin.list_topics(name).topics[name].partitions) < total:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def delete_records(self, name: str, partition: int, before: int) -> None:
        for future in self.admin.delete_records([TopicPartition(name, partition, before)]).values():
            future.result(ANSWER_S_MAX)

    def produce(self, topic: str, values: Iterable[Any], **fields: Any) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self._send(producer, topic, values, **fields)
        assert producer.flush(ANSWER_S_MAX) == 0

    def produce_large(self, topic: str, value: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0, "message.max.bytes": 1_000_000_000})
        self._send(producer, topic, [value])

    def transaction(self, topic: str, values: Iterable[Any], *, commit: bool, **fields: Any) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": uuid.uuid4().hex, "log_level": 0})
        producer.init_transactions(ANSWER_S_MAX)
        producer.begin_transaction()
        self._send(producer, topic, values, **fields)
        producer.flush(ANSWER_S_MAX)
        if commit:
            producer.commit_transaction(ANSWER_S_MAX)
        else:
            producer.abort_transaction(ANSWER_S_MAX)

    def _send(self, producer: Producer, topic: str, values: Iterable[Any], **fields: Any) -> None:
        failures: list[Any] = []
        for value in values:
            producer.produce(
                topic, value, on_delivery=lambda error, _: failures.append(error) if error else None, **fields
            )
            producer.poll(0)
        producer.flush(ANSWER_S_MAX)
        assert not failures, failures[0]

    def rows(self, topic: str, *, isolation: str = "read_committed") -> list[Row]:
        """Everything that is in the topic, by partition and offset."""
        count = len(self.admin.list_topics(topic).topics[topic].partitions)
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": "false",
                "enable.partition.eof": "true",
                "isolation.level": isolation,
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(count)])
        found, open_partitions = [], set(range(count))
        deadline = time.monotonic() + ANSWER_S_MAX
        while open_partitions:
            assert time.monotonic() < deadline, f"{topic} has no end"
            for message in consumer.consume(1000, 0.2):
                if message.error() is not None:
                    open_partitions.discard(message.partition())
                else:
                    found.append(
                        Row(
                            message.partition(),
                            message.offset(),
                            message.key(),
                            message.value(),
                            tuple(message.headers() or ()),
                        )
                    )
        consumer.close()
        return sorted(found, key=lambda row: (row.partition, row.offset))

    def values(self, topic: str) -> list[bytes | None]:
        return [row.value for row in self.rows(topic)]

    def group_offsets(self, group_id: str) -> dict[tuple[str, int], int]:
        """What a group has committed."""
        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id)])
        places = asked[group_id].result(ANSWER_S_MAX).topic_partitions
        return {(place.topic, place.partition): place.offset for place in places if place.offset >= 0}

    def commit(self, group_id: str, topic: str, offset: int) -> None:
        """An offset of partition 0; the first of a broker waits until the group's partition is led by somebody."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group_id, "log_level": 0})
        deadline = time.monotonic() + ANSWER_S_MAX
        while True:
            try:
                consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
                break
            except KafkaException:
                assert time.monotonic() < deadline, "nobody leads the group"
                time.sleep(0.05)
        consumer.close()

    def transactional_ids(self) -> list[str]:
        """All that the broker remembers; the library does not ask for them."""
        host, _, port = self.bootstrap.rpartition(":")
        connection = BrokerConnection(host, int(port), client_id="test", timeout_s=ANSWER_S_MAX)
        try:
            answer = connection.call(ListTransactionsRequest(), 0, ListTransactionsResponse)
        finally:
            connection.close()
        return sorted(each.transactional_id for each in answer.transaction_states)

    def groups(self) -> list[str]:
        return sorted(group.group_id for group in self.admin.list_consumer_groups().result(ANSWER_S_MAX).valid)


def offsets_json(offsets: dict[str, dict[str, int]]) -> str:
    return json.dumps(offsets)
