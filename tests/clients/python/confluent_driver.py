"""confluent-kafka (librdkafka) behind the test clients' JSON lines; tests/clients/drivers.py has the operations."""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from tests.clients.python.line_protocol import Reply, Request, decoded, encoded, serve

OPERATION_S_MAX = 15.0
SPECS = {"earliest": OffsetSpec.earliest, "latest": OffsetSpec.latest, "max_timestamp": OffsetSpec.max_timestamp}
QUIET = {"log_level": 0, "socket.timeout.ms": 10_000}


class Driver:
    def __init__(self, bootstrap: str) -> None:
        self.base: dict[str, Any] = {"bootstrap.servers": bootstrap, **QUIET}
        self.admin = AdminClient(self.base)
        self.producers: dict[tuple[str, str, bool], Any] = {}

    def producer_for(self, request: Request) -> Any:
        key = request["acks"], request["codec"], request["idempotent"]
        if key not in self.producers:
            config = {
                **self.base,
                "acks": request["acks"],
                "compression.type": request["codec"],
                "enable.idempotence": request["idempotent"],
                "linger.ms": 20,
                "message.max.bytes": 16 << 20,
                "message.timeout.ms": 20_000,
                # How long a topic may be unknown before its records fail.
                "topic.metadata.propagation.max.ms": 3_000,
            }
            self.producers[key] = Producer(config)
        return self.producers[key]

    def produce(self, request: Request) -> Reply:
        producer = self.producer_for(request)
        offsets: dict[int, int] = {}
        errors: list[Any] = []

        def delivered(index: int) -> Any:
            def note(error: Any, message: Message) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    offset = message.offset()
                    offsets[index] = -1 if offset is None or request["acks"] == "0" else offset

            return note

        for index, record in enumerate(request["records"]):
            producer.produce(
                request["topic"],
                partition=record["partition"],
                key=decoded(record["key"]),
                value=decoded(record["value"]),
                headers=[(name, decoded(value)) for name, value in record["headers"]],
                timestamp=record["timestamp"] or 0,
                on_delivery=delivered(index),
            )
        producer.flush(OPERATION_S_MAX + 10)
        if errors:
            raise KafkaException(errors[0])
        return {"offsets": [offsets[index] for index in range(len(request["records"]))]}

    def consume(self, request: Request) -> Reply:
        config = {
            **self.base,
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.wait.max.ms": 100,
        }
        consumer = Consumer(config)
        records: list[Reply] = []
        deadline = time.monotonic() + OPERATION_S_MAX
        try:
            consumer.assign([TopicPartition(request["topic"], request["partition"], request["offset"])])
            while len(records) < request["count"]:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"read {len(records)} of {request['count']} records")
                message = consumer.poll(0.5)
                if message is None:
                    continue
                if message.error() is not None:
                    raise KafkaException(message.error())
                records.append(consumed(message))
        finally:
            consumer.close()
        return {"records": records}

    def list_offset(self, request: Request) -> Reply:
        at = request["at"]
        spec = SPECS[at]() if isinstance(at, str) else OffsetSpec.for_timestamp(at)
        partition = TopicPartition(request["topic"], request["partition"])
        found = self.admin.list_offsets({partition: spec})[partition].result(OPERATION_S_MAX)
        return {"offset": found.offset}

    def create_topic(self, request: Request) -> Reply:
        topic = NewTopic(
            request["topic"],
            num_partitions=request["partitions"],
            replication_factor=request["replication_factor"],
            config=request["configs"],
        )
        self.admin.create_topics([topic])[request["topic"]].result(OPERATION_S_MAX)
        return {}

    def delete_topic(self, request: Request) -> Reply:
        self.admin.delete_topics([request["topic"]])[request["topic"]].result(OPERATION_S_MAX)
        return {}

    def create_partitions(self, request: Request) -> Reply:
        wanted = NewPartitions(request["topic"], request["total"])
        self.admin.create_partitions([wanted])[request["topic"]].result(OPERATION_S_MAX)
        return {}

    def describe_topic(self, request: Request) -> Reply:
        topic = self.admin.list_topics(request["topic"], timeout=OPERATION_S_MAX).topics[request["topic"]]
        if topic.error is not None:
            raise KafkaException(topic.error)
        return {"partitions": [{"id": id_, "leader": found.leader} for id_, found in sorted(topic.partitions.items())]}

    def list_topics(self, request: Request) -> Reply:
        return {"topics": sorted(self.admin.list_topics(timeout=OPERATION_S_MAX).topics)}

    def describe_configs(self, request: Request) -> Reply:
        resource = ConfigResource(request["resource"], request["name"])
        entries = self.admin.describe_configs([resource])[resource].result(OPERATION_S_MAX)
        return {"configs": {name: entry.value for name, entry in entries.items()}}

    def alter_configs(self, request: Request) -> Reply:
        changes = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in request["set"].items()
        ]
        resource = ConfigResource(request["resource"], request["name"], incremental_configs=changes)
        self.admin.incremental_alter_configs([resource])[resource].result(OPERATION_S_MAX)
        return {}

    def delete_records(self, request: Request) -> Reply:
        partition = TopicPartition(request["topic"], request["partition"], request["before"])
        deleted = self.admin.delete_records([partition])[partition].result(OPERATION_S_MAX)
        return {"low_watermark": deleted.low_watermark}

    def describe_cluster(self, request: Request) -> Reply:
        found = self.admin.describe_cluster().result(OPERATION_S_MAX)
        brokers = [{"id": node.id, "host": node.host, "port": node.port} for node in found.nodes]
        return {"brokers": brokers, "controller": found.controller.id, "cluster_id": found.cluster_id}


def consumed(message: Any) -> Reply:
    return {
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": encoded(message.key()),
        "value": encoded(message.value()),
        "headers": [[name, encoded(value)] for name, value in message.headers() or []],
    }


if __name__ == "__main__":
    serve(Driver(sys.argv[1]))
