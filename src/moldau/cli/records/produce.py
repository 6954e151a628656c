"""`moldau produce`: send the lines of standard input to a topic."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from moldau.cli.connection import add_connection_options
from moldau.cli.failures import OK, CommandFailed
from moldau.cli.librdkafka import (
    Outage,
    client_config,
    kafka_error,
    open_client,
    topic_failure,
    topic_metadata,
)
from moldau.cli.parsing import Parser
from moldau.cli.records.input import LineReader, read_records
from moldau.cli.records.json import OutgoingRecord
from moldau.cli.records.selection import check_partition

EXAMPLES = """\
examples:
  echo 'hello' | moldau produce orders
  echo 'customer-7:hello' | moldau produce orders --key-separator :
  moldau produce orders -H source=shell --compression zstd < records.txt
  moldau consume orders -e --from-beginning -o json | moldau produce copy -i json

json input has one object a line, as `moldau consume -o json` prints them:
  {"key": "a", "value": "b", "headers": [["name", "value"]], "timestamp": 1700000000000}
  where {"base64": "..."} stands for bytes that are not text, and null for none.
"""

DELIVERY_S = 30  # how long a broker that went away may take to come back
QUEUE_PAUSE_S = 0.1


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    outage = Outage("produce", options)
    reader = LineReader(options)
    producer = open_client(Producer, client_config(options, **settings(options, outage)))
    topic = topic_metadata(producer, options.topic, options, may_appear=True)
    if options.partition is not None:
        check_partition(options.topic, options.partition, topic.partitions)
    outage.on_answer()
    delivery = Delivery(options, outage)
    try:
        for record in read_records(sys.stdin.buffer, reader):
            send(producer, record, options, delivery)
            if delivery.failed:
                break
    finally:
        producer.flush(DELIVERY_S + options.timeout)
    delivery.check(undelivered=len(producer))
    return OK


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau produce",
        description="Send the lines of standard input to a topic, one record a line.",
        epilog=EXAMPLES,
    )
    parser.add_argument("topic", metavar="TOPIC")
    what = parser.add_argument_group("what to send")
    what.add_argument(
        "-i", "--input", choices=("text", "json", "jsonl"), default="text", help="json is one object a line"
    )
    key = what.add_mutually_exclusive_group()
    key.add_argument("-k", "--key", help="the key of every record")
    key.add_argument("-K", "--key-separator", metavar="TEXT", help="what stands between key and value in a line")
    what.add_argument(
        "-H", "--header", metavar="NAME=VALUE", action="append", default=[], help="on every record; may be repeated"
    )
    what.add_argument("--null-marker", metavar="TEXT", help="a key or value of this text is null")
    where = parser.add_argument_group("where and how")
    where.add_argument("-p", "--partition", metavar="N", type=int, help="default: by the key, as Java clients do")
    where.add_argument("--keep-partitions", action="store_true", help="the partition that a record names in json input")
    where.add_argument("-z", "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none")
    where.add_argument("--acks", choices=("0", "1", "all"), default="all")
    where.add_argument(
        "-o", "--output", choices=("none", "json", "jsonl"), default="none", help="json prints where each record is"
    )
    add_connection_options(parser)
    return parser.parse_args(arguments)


def settings(options: Namespace, outage: Outage) -> dict[str, object]:
    return {
        "acks": options.acks,
        "enable.idempotence": options.acks == "all",
        "compression.type": options.compression,
        "partitioner": "murmur2_random",  # keys go where Java's producer would put them
        "linger.ms": 5,
        "message.timeout.ms": DELIVERY_S * 1_000,
        "error_cb": outage.on_error,
    }


class Delivery:
    """What became of the records; the first failure ends the sending."""

    def __init__(self, options: Namespace, outage: Outage) -> None:
        self.topic = options.topic
        self.prints = options.output != "none"
        self.outage = outage
        self.failures = 0
        self.first_failure: KafkaError | None = None

    @property
    def failed(self) -> bool:
        return self.first_failure is not None

    def on_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.failures += 1
            self.first_failure = self.first_failure or error
            return
        self.outage.on_answer()
        if self.prints:
            print(json.dumps({"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}))

    def check(self, *, undelivered: int) -> None:
        lost = self.failures + undelivered
        if lost:
            cause = topic_failure(self.topic, self.first_failure) if self.first_failure else "no broker answers"
            raise CommandFailed(f"{lost} records were not delivered: {cause}")


def send(producer: Producer, record: OutgoingRecord, options: Namespace, delivery: Delivery) -> None:
    place: dict[str, Any] = {}
    if options.partition is not None:
        place["partition"] = options.partition
    elif options.keep_partitions and record.partition is not None:
        place["partition"] = record.partition
    if record.timestamp_ms is not None:
        place["timestamp"] = record.timestamp_ms
    while True:
        try:
            producer.produce(
                options.topic,
                record.value,
                record.key,
                headers=record.headers,
                on_delivery=delivery.on_delivery,
                **place,
            )
        except BufferError:
            producer.poll(QUEUE_PAUSE_S)
            continue
        except KafkaException as wrong:
            raise CommandFailed(topic_failure(options.topic, kafka_error(wrong))) from None
        break
    # A person who types wants to see a failure before the next line; a pipe wants speed.
    if sys.stdin.isatty():
        producer.flush(DELIVERY_S)
    producer.poll(0)
