"""A commit log: the changes of a table in a compacted topic, from which anybody builds the table again.

The topic keeps the last change of every key. A value of None (a tombstone) deletes the key.

Usage: python examples/patterns/change_log.py [BOOTSTRAP_SERVERS] [TOPIC]
"""

import json
import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


class Table:
    """A dictionary whose changes are written to the topic before they are made here."""

    def __init__(self, servers, topic):
        self.servers, self.topic = servers, topic
        self.rows = {}
        self.producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})

    def put(self, key, row):
        self._write(key, json.dumps(row))
        self.rows[key] = row

    def delete(self, key):
        self._write(key, None)
        self.rows.pop(key, None)

    def _write(self, key, value):
        self.producer.produce(self.topic, key=key, value=value)
        self.producer.poll(0)

    def flush(self):
        if self.producer.flush(30):
            raise SystemExit("the broker did not take every change")


def create(servers, topic):
    config = {"cleanup.policy": "compact", "delete.retention.ms": "86400000"}  # readers have a day to see a deletion
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, num_partitions=2, config=config)])[topic].result(30)


def restore(servers, topic):
    """The table as of now: every partition from its beginning to the end that it has at this moment."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "unused", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    ends = {number: consumer.get_watermark_offsets(TopicPartition(topic, number))[1] for number in partitions}
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    rows = {}
    while any(reached(consumer, topic, number) < end for number, end in ends.items() if end):
        message = consumer.poll(1)
        if message is None or message.error():
            continue
        key = message.key().decode()
        if message.value() is None:
            rows.pop(key, None)
        else:
            rows[key] = json.loads(message.value())
    consumer.close()
    return rows


def reached(consumer, topic, number):
    """Compaction leaves gaps, and transactions markers: the position says more than the last record does."""
    return consumer.position([TopicPartition(topic, number)])[0].offset


def main(servers="localhost:9092", topic="customers"):
    create(servers, topic)
    table = Table(servers, topic)
    for change in range(1000):
        table.put(f"customer-{change % 10}", {"orders": change})
    table.delete("customer-3")
    table.flush()
    restored = restore(servers, topic)
    print(f"1001 changes, {len(restored)} rows, the same as written: {restored == table.rows}")


if __name__ == "__main__":
    main(*sys.argv[1:])
