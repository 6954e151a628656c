"""aiokafka behind the test clients' JSON lines; tests/clients/drivers.py describes the operations."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from tests.clients.python.line_protocol import Reply, Request, decoded, encoded, serve_async

OPERATION_S_MAX = 15.0
LINE_BYTES_MAX = 64 << 20
RESOURCES = {"topic": ConfigResourceType.TOPIC, "broker": ConfigResourceType.BROKER}


class Driver:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin_client: Any = None
        self.producers: dict[tuple[str, str, bool], Any] = {}

    async def admin(self) -> Any:
        if self.admin_client is None:
            self.admin_client = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await self.admin_client.start()
        return self.admin_client

    async def producer_for(self, request: Request) -> Any:
        key = request["acks"], request["codec"], request["idempotent"]
        if key not in self.producers:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                acks="all" if request["acks"] == "all" else int(request["acks"]),
                compression_type=None if request["codec"] == "none" else request["codec"],
                enable_idempotence=request["idempotent"],
                linger_ms=20,
                max_request_size=16 << 20,
                request_timeout_ms=4_000,
            )
            await producer.start()
            self.producers[key] = producer
        return self.producers[key]

    async def produce(self, request: Request) -> Reply:
        producer = await self.producer_for(request)
        sent = [
            await producer.send(
                request["topic"],
                partition=record["partition"],
                key=decoded(record["key"]),
                value=decoded(record["value"]),
                headers=[(name, decoded(value)) for name, value in record["headers"]],
                timestamp_ms=record["timestamp"],
            )
            for record in request["records"]
        ]
        done = await asyncio.wait_for(asyncio.gather(*sent), OPERATION_S_MAX + 10)
        return {"offsets": [-1 if metadata is None else metadata.offset for metadata in done]}

    async def consume(self, request: Request) -> Reply:
        partition = TopicPartition(request["topic"], request["partition"])
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=100,
        )
        records: list[Reply] = []
        await consumer.start()
        try:
            consumer.assign([partition])
            consumer.seek(partition, request["offset"])
            async with asyncio.timeout(OPERATION_S_MAX):
                while len(records) < request["count"]:
                    records.append(consumed(await consumer.getone()))
        finally:
            await consumer.stop()
        return {"records": records}

    async def list_offset(self, request: Request) -> Reply:
        at = request["at"]
        partition = TopicPartition(request["topic"], request["partition"])
        consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap, group_id=None)
        await consumer.start()
        try:
            if at == "earliest":
                return {"offset": (await consumer.beginning_offsets([partition]))[partition]}
            if at == "latest":
                return {"offset": (await consumer.end_offsets([partition]))[partition]}
            found = (await consumer.offsets_for_times({partition: at}))[partition]
            return {"offset": -1 if found is None else found.offset}
        finally:
            await consumer.stop()

    async def create_topic(self, request: Request) -> Reply:
        topic = NewTopic(
            request["topic"],
            num_partitions=request["partitions"],
            replication_factor=request["replication_factor"],
            topic_configs=request["configs"],
        )
        answer = await (await self.admin()).create_topics([topic])
        raise_if_failed(answer.topic_errors[0][1])
        return {}

    async def delete_topic(self, request: Request) -> Reply:
        answer = await (await self.admin()).delete_topics([request["topic"]])
        raise_if_failed(answer.topic_error_codes[0][1])
        return {}

    async def create_partitions(self, request: Request) -> Reply:
        await (await self.admin()).create_partitions({request["topic"]: NewPartitions(request["total"])})
        return {}

    async def describe_topic(self, request: Request) -> Reply:
        (topic,) = await (await self.admin()).describe_topics([request["topic"]])
        raise_if_failed(topic["error_code"])
        partitions = [{"id": found["partition"], "leader": found["leader"]} for found in topic["partitions"]]
        return {"partitions": sorted(partitions, key=lambda found: int(found["id"]))}

    async def list_topics(self, request: Request) -> Reply:
        return {"topics": await (await self.admin()).list_topics()}

    async def describe_configs(self, request: Request) -> Reply:
        resource = ConfigResource(RESOURCES[request["resource"]], request["name"])
        (answer,) = await (await self.admin()).describe_configs([resource])
        code, _message, _kind, _name, entries = answer.resources[0]
        raise_if_failed(code)
        return {"configs": {entry[0]: entry[1] for entry in entries}}

    async def alter_configs(self, request: Request) -> Reply:
        resource = ConfigResource(RESOURCES[request["resource"]], request["name"], configs=request["set"])
        for answer in await (await self.admin()).alter_configs([resource]):
            for code, *_ in answer.resources:
                raise_if_failed(code)
        return {}

    async def delete_records(self, request: Request) -> Reply:
        partition = TopicPartition(request["topic"], request["partition"])
        deleted = await (await self.admin()).delete_records({partition: RecordsToDelete(request["before"])})
        return {"low_watermark": deleted[partition]}

    async def describe_cluster(self, request: Request) -> Reply:
        found = await (await self.admin()).describe_cluster()
        brokers = [{"id": node["node_id"], "host": node["host"], "port": node["port"]} for node in found["brokers"]]
        return {"brokers": brokers, "controller": found["controller_id"], "cluster_id": found["cluster_id"]}


def raise_if_failed(code: int) -> None:
    if code:
        raise for_code(code)()


def consumed(record: Any) -> Reply:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": encoded(record.key),
        "value": encoded(record.value),
        "headers": [[name, encoded(value)] for name, value in record.headers],
    }


async def main() -> None:
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    await serve_async(Driver(sys.argv[1]), lines.readline)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main())
