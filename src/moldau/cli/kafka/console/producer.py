"""`moldau console-producer`: send what is typed, with the options and properties of Apache Kafka's tool."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import Any

from confluent_kafka import KafkaException, Producer

from moldau.cli.ending import ended_by_signals
from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.kafka.commands.console_producer import LINE_READERS
from moldau.cli.kafka.console import own_code
from moldau.cli.kafka.console.line_reader import LineMessageReader
from moldau.cli.kafka.console.properties import tool_properties, without_java_only
from moldau.cli.librdkafka import Outage, client_config, kafka_error, open_client, topic_metadata
from moldau.cli.records.delivery import Delivery, delivery_failure
from moldau.cli.records.input import STANDARD_INPUT, chunks_of
from moldau.cli.records.json import OutgoingRecord

DELIVERY_MS = 120_000  # Java's delivery.timeout.ms
QUEUE_PAUSE_S = 0.1
PROMPT = ">"
# Settings of librdkafka by option; the order counts, as two options are about one of them.
SETTINGS = {
    "timeout_linger": "linger.ms",
    "request_required_acks": "acks",
    "request_timeout_ms": "request.timeout.ms",
    "message_send_max_retries": "retries",
    "retry_backoff_ms": "retry.backoff.ms",
    "socket_buffer_size": "socket.send.buffer.bytes",
    "batch_size": "batch.size",
    "max_partition_memory_bytes": "batch.size",
    "metadata_expiry_ms": "metadata.max.age.ms",
}


def run(options: Namespace) -> int:
    outage = Outage("console-producer", options)
    read = chosen_reader(options)
    producer = open_client(Producer, without_java_only(producer_config(options, outage)))
    topic_metadata(producer, options.topic, options, may_appear=True)
    outage.on_answer()
    delivery = Delivery(options.topic, outage, prints=False)
    with ended_by_signals():
        try:
            for record in read(prompted(chunks_of(STANDARD_INPUT, lambda: producer.poll(0) and None))):
                send(producer, options, record, delivery)
                if delivery.failed:
                    break
        finally:
            producer.flush(DELIVERY_MS / 1_000)
    delivery.check(undelivered=len(producer))
    return OK


def chosen_reader(options: Namespace) -> Any:
    """A function from chunks of bytes to records."""
    properties = tool_properties(options.reader_config, options.reader_property, option="--reader-property")
    if own_code.is_own(options.line_reader):
        read = own_code.load(options.line_reader, properties, option="--line-reader")
        return lambda chunks: _own_records(read, chunks, options.line_reader)
    if options.line_reader not in LINE_READERS:
        raise UsageError(f"--line-reader: unknown reader {options.line_reader!r}; a reader of your own is MODULE:NAME")
    return LineMessageReader(properties).records


def _own_records(read: Any, chunks: Iterable[bytes], name: str) -> Iterator[OutgoingRecord]:
    try:
        for each in read(chunks):
            yield _own_record(each)
    except (OSError, CommandFailed):
        raise
    except Exception as wrong:  # whatever a user's code does
        raise CommandFailed(f"--line-reader {name}: {type(wrong).__name__}: {wrong}") from None


def _own_record(found: Any) -> OutgoingRecord:
    key, value, *headers = found
    if not all(isinstance(each, bytes | str | None) for each in (key, value)):
        raise TypeError(f"key and value are bytes, text or None, not {key!r} and {value!r}")
    return OutgoingRecord(key, value, headers[0] if headers else [])


def producer_config(options: Namespace, outage: Outage) -> dict[str, Any]:
    own: dict[str, object] = {
        "message.timeout.ms": DELIVERY_MS,
        "partitioner": "murmur2_random",
        "message.max.bytes": 1_000_000_000,
        "compression.type": options.compression_codec or "none",
        "error_cb": outage.on_error,
    }
    for option, setting in SETTINGS.items():
        given = getattr(options, option)
        if given is not None:
            own[setting] = given
    if options.max_memory_bytes is not None:
        own["queue.buffering.max.kbytes"] = max(1, options.max_memory_bytes // 1_024)
    return client_config(options, **own)


def prompted(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """A person is shown that a line is waited for."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield from chunks
        return
    print(PROMPT, end="", flush=True)
    for chunk in chunks:
        yield chunk
        print(PROMPT, end="", flush=True)


def send(producer: Producer, options: Namespace, record: OutgoingRecord, delivery: Delivery) -> None:
    while True:
        try:
            producer.produce(
                options.topic, record.value, record.key, headers=record.headers, on_delivery=delivery.on_delivery
            )
        except BufferError:
            producer.poll(QUEUE_PAUSE_S)
            continue
        except KafkaException as wrong:
            size_bytes = len(record.value or b"")
            raise CommandFailed(delivery_failure(options.topic, kafka_error(wrong), size_bytes=size_bytes)) from None
        break
    if options.sync:
        producer.flush(DELIVERY_MS / 1_000)
    producer.poll(0)
