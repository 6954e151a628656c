"""Retry topics: a record that fails waits in a topic of its own, and the records behind it are not held up.

    orders --fails--> orders.retry-1 --fails--> orders.retry-2 --fails--> orders.dead-letters

Usage: python examples/patterns/retry_topics.py [BOOTSTRAP_SERVERS] [TOPIC]
"""

import sys
import time
from collections import Counter

from confluent_kafka import Consumer, Message, Producer, TopicPartition

DELAYS_S = (1.0, 3.0)  # before the first and the second attempt to handle a record again


class RetryingConsumer:
    """Calls `handle` for every record of the topic and of its retry topics, when each is due."""

    def __init__(self, servers, topic, handle):
        retries = [f"{topic}.retry-{number}" for number in range(1, len(DELAYS_S) + 1)]
        self.stages = [topic, *retries, f"{topic}.dead-letters"]
        self.handle = handle
        self.postponed = {}  # partitions that are paused, and when they go on
        self.producer = Producer({"bootstrap.servers": servers})
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{topic}-workers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,  # committed below, when the record is handled or handed on
                "allow.auto.create.topics": True,
                "topic.metadata.refresh.interval.ms": 1000,  # retry topics that are created later are found soon
            }
        )
        self.consumer.subscribe(self.stages[:-1], on_revoke=self.forget, on_lost=self.forget)

    def forget(self, _consumer, partitions):
        for partition in partitions:
            self.postponed.pop((partition.topic, partition.partition), None)

    def poll(self):
        """Handle at most one record."""
        self.resume_due()
        message = self.consumer.poll(0.1)
        if message is None or message.error():
            return
        due_s = float(dict(message.headers() or []).get("due", 0))
        if due_s > time.time():
            self.postpone(message, due_s)
            return
        try:
            self.handle(message)
        except Exception as wrong:
            self.hand_on(message, wrong)
        self.consumer.commit(message, asynchronous=False)

    def postpone(self, message, due_s):
        """Records of a retry topic are due in their order, so all that follow can wait for this one."""
        partition = TopicPartition(message.topic(), message.partition(), message.offset())
        self.consumer.pause([partition])
        self.consumer.seek(partition)
        self.postponed[message.topic(), message.partition()] = due_s

    def resume_due(self):
        due = [place for place, due_s in self.postponed.items() if due_s <= time.time()]
        for place in due:
            del self.postponed[place]
            self.consumer.resume([TopicPartition(*place)])

    def hand_on(self, message: Message, wrong):
        """To the next topic; the record counts as done only when it is there."""
        stage = self.stages.index(message.topic())
        headers = {"error": repr(wrong).encode()}
        if stage < len(DELAYS_S):
            headers["due"] = str(time.time() + DELAYS_S[stage]).encode()
        self.producer.produce(
            self.stages[stage + 1], key=message.key(), value=message.value(), headers=list(headers.items())
        )
        if self.producer.flush(30):
            raise SystemExit("the broker did not take a record for retry")

    def close(self):
        self.consumer.close()


def main(servers="localhost:9092", topic="orders"):
    attempts = Counter()
    done = []

    def handle(message):
        order = message.value().decode()
        attempts[order] += 1
        if order == "broken" or (order == "flaky" and attempts[order] < 3):
            raise ValueError(f"attempt {attempts[order]}")
        done.append(order)
        print(f"handled {order} at attempt {attempts[order]}", flush=True)

    producer = Producer({"bootstrap.servers": servers})
    for order in ("fine", "flaky", "broken", "good"):
        producer.produce(topic, order)
    producer.flush(30)
    worker = RetryingConsumer(servers, topic, handle)
    while len(done) < 3 or attempts["broken"] < 3:
        worker.poll()
    worker.close()
    print(f"gave up on broken after {attempts['broken']} attempts: it is in {topic}.dead-letters")


if __name__ == "__main__":
    main(*sys.argv[1:])
