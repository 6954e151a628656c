"""Consume, transform, produce, exactly once: the results and the offsets of their inputs are one transaction.

Kill this program at any time and start it again: no result is missing and none is there twice, for readers with
isolation.level=read_committed. Run several with different ids to share the partitions.

Usage: python examples/patterns/exactly_once.py [BOOTSTRAP_SERVERS] [INPUT] [OUTPUT] [ID]
It ends when there was nothing to read for some seconds.
"""

import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

BATCH_RECORDS = 100
IDLE_S_MAX = 3.0


def transform(value):
    return value.upper()


class Pipeline:
    def __init__(self, servers, source, target, instance):
        self.target = target
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{source}-to-{target}",
                "group.instance.id": instance,  # a restart takes its partitions over at once, without a rebalance
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,  # the transaction commits the offsets
                "isolation.level": "read_committed",
            }
        )
        # The id must be the same after a restart: it is how the broker knows whose open transaction to abort.
        self.producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{source}-to-{target}-{instance}"})
        self.producer.init_transactions(60)
        self.consumer.subscribe([source])

    def step(self):
        """One transaction; gives the number of records in it."""
        messages = [each for each in self.consumer.consume(BATCH_RECORDS, timeout=0.5) if not each.error()]
        if not messages:
            return 0
        self.producer.begin_transaction()
        try:
            for message in messages:
                self.producer.produce(self.target, key=message.key(), value=transform(message.value()))
            positions = self.consumer.position(self.consumer.assignment())
            self.producer.send_offsets_to_transaction(positions, self.consumer.consumer_group_metadata())
            self.commit()
        except KafkaException as wrong:
            if not wrong.args[0].txn_requires_abort():
                raise  # fenced by another instance with this id, or beyond repair: end, and be started again
            self.producer.abort_transaction()
            self.rewind(messages)
            return 0
        return len(messages)

    def commit(self):
        while True:
            try:
                return self.producer.commit_transaction()
            except KafkaException as wrong:
                if not wrong.args[0].retriable():
                    raise

    def rewind(self, messages):
        """Read the records of an aborted transaction again."""
        first = {}
        for message in messages:
            first.setdefault((message.topic(), message.partition()), message.offset())
        mine = {(each.topic, each.partition) for each in self.consumer.assignment()}
        for place, offset in first.items():
            if place in mine:
                self.consumer.seek(TopicPartition(*place, offset))

    def close(self):
        self.consumer.close()


def main(servers="localhost:9092", source="orders", target="invoices", instance="1"):
    pipeline = Pipeline(servers, source, target, instance)
    total, last_s = 0, time.monotonic()
    while time.monotonic() - last_s < IDLE_S_MAX or not total:
        count = pipeline.step()
        if count:
            total, last_s = total + count, time.monotonic()
            print(f"committed {total}", flush=True)
    pipeline.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
