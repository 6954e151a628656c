"""`moldau console-producer`: send what is typed, with the options and properties of Apache Kafka's tool."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import Any

from confluent_kafka import KafkaException, Producer

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.kafka.console import own_code
from moldau.cli.kafka.console.line_reader import LineMessageReader
from moldau.cli.kafka.console.properties import tool_properties, warn_of_old_names, without_java_only
from moldau.cli.librdkafka import Outage, client_config, kafka_error, open_client, topic_metadata
from moldau.cli.parsing import Parser, whole
from moldau.cli.records.delivery import Delivery, delivery_failure
from moldau.cli.records.input import STANDARD_INPUT, chunks_of
from moldau.cli.records.json import OutgoingRecord

EXAMPLES = """\
examples:
  moldau console-producer --topic orders < lines.txt
  moldau console-producer --topic orders --reader-property parse.key=true --reader-property key.separator=:
  moldau console-producer --topic orders --reader-property parse.headers=true      h1:v1,h2:v2<TAB>value
"""
OLD_NAMES = {
    "--producer-property": "--command-property",
    "--producer.config": "--command-config",
    "--property": "--reader-property",
    "--max-partition-memory-bytes": "--batch-size",
}
LINE_READERS = ("org.apache.kafka.tools.LineMessageReader", "kafka.tools.ConsoleProducer$LineMessageReader")
DELIVERY_MS = 120_000  # Java's delivery.timeout.ms
QUEUE_PAUSE_S = 0.1
PROMPT = ">"
LONG = whole(0, 2**63 - 1, "number")
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


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    warn_of_old_names(arguments, OLD_NAMES)
    outage = Outage("console-producer", options)
    read = chosen_reader(options)
    producer = open_client(Producer, without_java_only(producer_config(options, outage)))
    topic_metadata(producer, options.topic, options, may_appear=True)
    outage.on_answer()
    delivery = Delivery(options.topic, outage, prints=False)
    try:
        for record in read(prompted(chunks_of(STANDARD_INPUT, lambda: producer.poll(0) and None))):
            send(producer, options, record, delivery)
            if delivery.failed:
                break
    finally:
        producer.flush(DELIVERY_MS / 1_000)
    delivery.check(undelivered=len(producer))
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau console-producer",
        description="Send the lines of standard input to a topic, with the options of kafka-console-producer.",
        epilog=EXAMPLES,
        allow_abbrev=False,
    )
    parser.add_argument("--topic", required=True)
    parser.add_argument("--sync", action="store_true", help="wait for each record")
    parser.add_argument(
        "--compression-codec", nargs="?", const="gzip", default=None, metavar="CODEC",
        choices=("none", "gzip", "snappy", "lz4", "zstd"), help="none, gzip (without a value), snappy, lz4, zstd",
    )  # fmt: skip
    parser.add_argument("--batch-size", type=LONG, metavar="BYTES")
    parser.add_argument("--max-partition-memory-bytes", type=LONG, metavar="BYTES", help="the old name of --batch-size")
    parser.add_argument("--message-send-max-retries", type=LONG, metavar="N", default=3)
    parser.add_argument("--retry-backoff-ms", type=LONG, metavar="MS")
    parser.add_argument("--request-required-acks", metavar="ACKS", default="-1", choices=("-1", "all", "1", "0"))
    parser.add_argument("--request-timeout-ms", type=LONG, metavar="MS")
    parser.add_argument("--metadata-expiry-ms", type=LONG, metavar="MS")
    parser.add_argument("--max-block-ms", type=LONG, metavar="MS", help="taken, and without effect")
    parser.add_argument("--max-memory-bytes", type=LONG, metavar="BYTES", help="what may wait to be sent")
    parser.add_argument("--socket-buffer-size", type=LONG, metavar="BYTES")
    parser.add_argument(
        "--line-reader", metavar="CLASS", default=LINE_READERS[0], help="Apache Kafka's, or MODULE:NAME"
    )
    parser.add_argument(
        "--reader-property", "--property", dest="reader_property", metavar="KEY=VALUE", action="append", default=[],
        help="parse.key, parse.headers, ignore.error, key.separator, headers.delimiter, headers.separator,"
        " headers.key.separator, null.marker",
    )  # fmt: skip
    parser.add_argument("--reader-config", metavar="FILE", help="such properties in a file")
    add_kafka_connection_options(
        parser,
        files=("--command-config", "--producer.config"),
        properties=("--command-property", "--producer-property"),
    )
    # The same word says for our own tools how long to wait for an answer.
    parser.add_argument("--timeout", dest="timeout_linger", type=LONG, metavar="MS", help="how long records may gather")
    return parser.parse_args(arguments)


def chosen_reader(options: Namespace) -> Any:
    """A function from chunks of bytes to records."""
    properties = tool_properties(options.reader_config, options.reader_property, option="--reader-property")
    if own_code.is_own(options.line_reader):
        read = own_code.load(options.line_reader, properties, option="--line-reader")
        return lambda chunks: (_own_record(each) for each in read(chunks))
    if options.line_reader not in LINE_READERS:
        raise UsageError(f"--line-reader: unknown reader {options.line_reader!r}; a reader of your own is MODULE:NAME")
    return LineMessageReader(properties).records


def _own_record(found: Any) -> OutgoingRecord:
    key, value, *headers = found
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
