"""`moldau e2e-latency`: Apache Kafka's EndToEndLatency, one record at a time from a producer to a consumer."""

from __future__ import annotations

import os
import random
import time
from argparse import Namespace
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from moldau.cli.failures import OK, CommandFailed
from moldau.cli.kafka.java_clients import AS_JAVA, java_client_config
from moldau.cli.librdkafka import cluster_metadata, open_client, topic_metadata
from moldau.cli.wire import open_cluster
from moldau.core.clock import SystemClock
from moldau.core.errors import ErrorCode
from moldau.wire.messages import CreateTopicsRequest, CreateTopicsResponse
from moldau.wire.messages.create_topics import CreatableTopic

CLIENT_ID = "e2e-latency"
POLL_S = 60.0
REPORT_EVERY = 1_000
Headers = list[tuple[str, bytes | None]]


def run(options: Namespace) -> int:
    config = java_client_config(options, client_id=CLIENT_ID)
    consumer = open_client(Consumer, config | _consumer_settings())
    if options.topic not in cluster_metadata(consumer, options).topics:
        _create(options)
    partitions = topic_metadata(consumer, options.topic, options, may_appear=True).partitions
    producer = open_client(Producer, config | {"linger.ms": 0, "acks": options.producer_acks, "partitioner": AS_JAVA})
    try:
        ends = [
            consumer.get_watermark_offsets(TopicPartition(options.topic, each), timeout=options.timeout)[1]
            for each in partitions
        ]
        consumer.assign([TopicPartition(options.topic, each, end) for each, end in zip(partitions, ends, strict=True)])
        _print_results([_measured(producer, consumer, options, number) for number in range(options.num_records)])
    finally:
        consumer.close()
    return OK


def _consumer_settings() -> dict[str, Any]:
    return {
        "group.id": f"test-group-{SystemClock().now_ms()}",
        "enable.auto.commit": False,
        "auto.offset.reset": "latest",
        "fetch.wait.max.ms": 0,  # nothing waits for more
    }


def _measured(producer: Producer, consumer: Consumer, options: Namespace, number: int) -> float:
    """Milliseconds from before the record is sent until it is read, acknowledged before that."""
    letter = bytes([random.randrange(65, 91)])
    value, key = letter * options.record_size, letter * options.record_key_size or None
    headers = _headers(options)
    start_s = time.perf_counter()
    failures: list[str] = []
    producer.produce(
        options.topic,
        value,
        key,
        headers=headers,
        on_delivery=lambda error, _message: failures.append(error.str()) if error else None,
    )
    producer.flush(POLL_S)
    if failures:
        raise CommandFailed(f"a record was not delivered: {failures[0]}")
    message = consumer.poll(POLL_S)
    elapsed_ms = (time.perf_counter() - start_s) * 1_000
    _check(message, value, key, headers)
    if number % REPORT_EVERY == 0:
        print(f"{number}\t{elapsed_ms}", flush=True)
    return elapsed_ms


def _headers(options: Namespace) -> Headers:
    size = options.record_header_size
    return [
        ("H" * options.record_header_key_size, None if size < 0 else os.urandom(size))
        for _ in range(options.num_headers)
    ]


def _check(message: Message | None, value: bytes, key: bytes | None, headers: Headers) -> None:
    if message is None:
        raise CommandFailed(f"poll() timed out before finding a result (timeout:[{POLL_S * 1_000:.0f}])")
    if message.error() is not None:
        raise KafkaException(message.error())
    for what, read, sent in (
        ("message", message.value(), value),
        ("message key", message.key(), key),
        ("message headers", message.headers() or [], headers),
    ):
        if read != sent:
            raise CommandFailed(
                f"The {what} read did not match the {what} sent: does somebody else write to the topic?"
            )


def _print_results(latencies: list[float]) -> None:
    print(f"Avg latency: {sum(latencies) / len(latencies):.4f} ms")
    found = sorted(int(each) for each in latencies)
    p50, p99, p999 = (found[int(len(found) * share)] for share in (0.5, 0.99, 0.999))
    print(f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}")


def _create(options: Namespace) -> None:
    print(f'Topic "{options.topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1')
    request = CreateTopicsRequest(topics=[CreatableTopic(options.topic, 1, 1)], timeout_ms=int(options.timeout * 1_000))
    with open_cluster(options) as cluster:
        (made,) = cluster.ask_controller(
            request, CreateTopicsResponse, codes=lambda found: [each.error_code for each in found.topics]
        ).topics
    if made.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        raise CommandFailed(f"Creation of topic {options.topic} failed: {made.error_message or made.error_code}")
