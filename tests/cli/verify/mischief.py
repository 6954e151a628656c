"""A command for --restart-broker that harms the records instead: what a checker must not miss.

python -m tests.cli.verify.mischief BOOTSTRAP ID
"""

from __future__ import annotations

import sys

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

WAIT_S = 20.0
LAST = 3  # of the three brokers
HARMED = 0  # the partition with the records that are too many
AHEAD = 9_000_000  # a number that the load never comes to


def main(bootstrap: str, broker: str) -> None:
    """The first broker's turn brings a duplicate, the second's a number out of order, the third's a loss."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = admin.list_topics(timeout=WAIT_S).topics
    (name,) = [each for each in topics if each.startswith("moldau-verify") and each.endswith("rolling-restart")]
    if int(broker) == LAST:
        ends = [TopicPartition(name, each, OFFSET_END) for each in topics[name].partitions if each != HARMED]
        for done in admin.delete_records(ends).values():
            done.result(WAIT_S)
        return
    first = first_value(bootstrap, name)
    value = first if int(broker) == LAST - 1 else b"7.%d" % AHEAD
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(name, value, partition=HARMED)
    if value != first:
        producer.produce(name, b"7.1", partition=HARMED)
    assert producer.flush(WAIT_S) == 0


def first_value(bootstrap: str, topic: str) -> bytes:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "mischief", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, HARMED, 0)])
    record = consumer.poll(WAIT_S)
    assert record is not None
    assert record.error() is None
    found: bytes = record.value()
    consumer.close()
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
