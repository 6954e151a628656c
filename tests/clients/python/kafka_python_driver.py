"""kafka-python behind the test clients' JSON lines; tests/clients/drivers.py describes the operations."""

from __future__ import annotations

import logging
import re
import sys
import time
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic, OffsetSpec
from kafka.errors import for_code

from tests.clients.python.line_protocol import Reply, Request, decoded, encoded, serve

OPERATION_S_MAX = 15.0
RESOURCES = {"topic": ConfigResourceType.TOPIC, "broker": ConfigResourceType.BROKER}
SPECS = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST, "max_timestamp": OffsetSpec.MAX_TIMESTAMP}


class Driver:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self.producers: dict[tuple[str, str, bool], Any] = {}

    def producer_for(self, request: Request) -> Any:
        key = request["acks"], request["codec"], request["idempotent"]
        if key not in self.producers:
            self.producers[key] = KafkaProducer(
                bootstrap_servers=self.bootstrap,
                acks="all" if request["acks"] == "all" else int(request["acks"]),
                compression_type=None if request["codec"] == "none" else request["codec"],
                enable_idempotence=request["idempotent"],
                linger_ms=20,
                max_request_size=16 << 20,
                max_block_ms=4_000,
                request_timeout_ms=10_000,
                delivery_timeout_ms=20_000,
            )
        return self.producers[key]

    def produce(self, request: Request) -> Reply:
        producer = self.producer_for(request)
        sent = [
            producer.send(
                request["topic"],
                partition=record["partition"],
                key=decoded(record["key"]),
                value=decoded(record["value"]),
                headers=[(name, decoded(value)) for name, value in record["headers"]],
                timestamp_ms=record["timestamp"],
            )
            for record in request["records"]
        ]
        producer.flush(OPERATION_S_MAX + 10)
        offsets = [future.get(timeout=OPERATION_S_MAX).offset for future in sent]
        return {"offsets": [-1] * len(sent) if request["acks"] == "0" else offsets}

    def consume(self, request: Request) -> Reply:
        partition = TopicPartition(request["topic"], request["partition"])
        records: list[Reply] = []
        deadline = time.monotonic() + OPERATION_S_MAX
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=100,
        )
        try:
            consumer.assign([partition])
            consumer.seek(partition, request["offset"])
            while len(records) < request["count"]:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"read {len(records)} of {request['count']} records")
                for found in consumer.poll(timeout_ms=500).values():
                    records += [consumed(record) for record in found]
        finally:
            consumer.close()
        return {"records": records[: request["count"]]}

    def list_offset(self, request: Request) -> Reply:
        at = request["at"]
        partition = TopicPartition(request["topic"], request["partition"])
        spec = SPECS[at] if isinstance(at, str) else at
        return {"offset": self.admin.list_partition_offsets({partition: spec})[partition].offset}

    def create_topic(self, request: Request) -> Reply:
        topic = NewTopic(
            request["topic"],
            num_partitions=request["partitions"],
            replication_factor=request["replication_factor"],
            topic_configs=request["configs"],
        )
        self.admin.create_topics([topic])
        return {}

    def delete_topic(self, request: Request) -> Reply:
        self.admin.delete_topics([request["topic"]])
        return {}

    def create_partitions(self, request: Request) -> Reply:
        self.admin.create_partitions({request["topic"]: NewPartitions(request["total"])})
        return {}

    def describe_topic(self, request: Request) -> Reply:
        (topic,) = self.admin.describe_topics([request["topic"]])
        partitions = [{"id": found["partition_index"], "leader": found["leader_id"]} for found in topic["partitions"]]
        return {"partitions": sorted(partitions, key=lambda found: int(found["id"]))}

    def list_topics(self, request: Request) -> Reply:
        return {"topics": self.admin.list_topics()}

    def describe_configs(self, request: Request) -> Reply:
        resource = ConfigResource(RESOURCES[request["resource"]], request["name"])
        found = self.admin.describe_configs([resource], config_filter="all")
        entries = found[request["resource"]][request["name"]]
        return {"configs": {name: entry["value"] for name, entry in entries.items()}}

    def alter_configs(self, request: Request) -> Reply:
        resource = ConfigResource(RESOURCES[request["resource"]], request["name"], configs=request["set"])
        done = self.admin.alter_configs([resource])[request["resource"]][request["name"]]
        # The client keeps the error as a text, "[Error 40] ...".
        if code := re.match(r"\[Error (\d+)\]", done):
            raise for_code(int(code[1]))(done)
        return {}

    def delete_records(self, request: Request) -> Reply:
        partition = TopicPartition(request["topic"], request["partition"])
        return {"low_watermark": self.admin.delete_records({partition: request["before"]})[partition]["low_watermark"]}

    def describe_cluster(self, request: Request) -> Reply:
        found = self.admin.describe_cluster()
        brokers = [{"id": node["broker_id"], "host": node["host"], "port": node["port"]} for node in found["brokers"]]
        return {"brokers": brokers, "controller": found["controller_id"], "cluster_id": found["cluster_id"]}


def consumed(record: Any) -> Reply:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": encoded(record.key),
        "value": encoded(record.value),
        "headers": [[name, encoded(value)] for name, value in record.headers],
    }


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    serve(Driver(sys.argv[1]))
