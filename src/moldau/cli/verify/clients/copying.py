"""A client that copies one topic into another, each record exactly once, whenever it is killed."""

from __future__ import annotations

from argparse import Namespace

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import FAILED, OK
from moldau.cli.kafka.verifiable.events import StopRequest, tell
from moldau.cli.librdkafka import client_config, kafka_error, reason
from moldau.cli.parsing import Parser

AT_ONCE = 50
POLL_S = 0.1
CALL_S = 30.0
TRANSACTION_MS = 60_000


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    consumer = Consumer(
        {
            **client_config(options),
            "group.id": options.name,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer(
        {**client_config(options), "transactional.id": options.name, "transaction.timeout.ms": TRANSACTION_MS}
    )
    # Whoever had this id before is fenced, and what it left open aborted, before its offsets are asked for.
    producer.init_transactions(CALL_S)
    places = [
        TopicPartition(options.source, each)
        for each in consumer.list_topics(options.source, CALL_S).topics[options.source].partitions
    ]
    known = consumer.committed(places, CALL_S)
    consumer.assign([TopicPartition(each.topic, each.partition, max(0, each.offset)) for each in known])
    tell("startup_complete")
    stop = StopRequest()
    while not stop.is_set:
        if not _copied(consumer, producer, options):
            return FAILED
    consumer.close()
    tell("shutdown_complete")
    return OK


def _copied(consumer: Consumer, producer: Producer, options: Namespace) -> bool:
    """One transaction, if there is anything to copy; False if this process can't go on."""
    records = [each for each in consumer.consume(AT_ONCE, POLL_S) if each.error() is None]
    if not records:
        return True
    try:
        producer.begin_transaction()
        for each in records:
            producer.produce(options.target, each.value(), each.key(), partition=each.partition())
        ends = {each.partition(): each.offset() + 1 for each in records}
        offsets = [TopicPartition(options.source, partition, offset) for partition, offset in ends.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), CALL_S)
        _commit(producer)
    except KafkaException as wrong:
        # Started again it finds what was committed, and has nothing to rewind by itself.
        tell("transaction_failed", message=reason(wrong))
        return False
    tell("transaction_committed", count=len(records))
    return True


def _commit(producer: Producer) -> None:
    while True:
        try:
            producer.commit_transaction(CALL_S)
            return
        except KafkaException as wrong:
            error: KafkaError = kafka_error(wrong)
            if not error.retriable():
                raise


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(prog="moldau verify copier")
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--name", required=True, help="of its group and of its transactions")
    add_kafka_connection_options(parser)
    return parser.parse_args(arguments)
