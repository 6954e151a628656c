"""A client that begins a transaction, sends into it, and leaves it open until somebody ends the process."""

from __future__ import annotations

import threading
from argparse import Namespace

from confluent_kafka import Producer

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import FAILED
from moldau.cli.kafka.verifiable.events import tell
from moldau.cli.librdkafka import client_config
from moldau.cli.parsing import Parser, whole

RECORDS = 10
CALL_S = 30.0


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    settings = {"transactional.id": options.name, "transaction.timeout.ms": options.transaction_timeout_ms}
    producer = Producer({**client_config(options), **settings, "message.timeout.ms": options.transaction_timeout_ms})
    producer.init_transactions(CALL_S)
    producer.begin_transaction()
    for number in range(RECORDS):
        producer.produce(options.topic, f"open.{number}", partition=0)
    if producer.flush(CALL_S):
        return FAILED
    tell("transaction_open")
    threading.Event().wait()
    return FAILED


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(prog="moldau verify open-transaction")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--transaction-timeout-ms", type=whole(1, 900_000, "time"), required=True)
    add_kafka_connection_options(parser)
    return parser.parse_args(arguments)
