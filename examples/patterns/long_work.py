"""Long work: a record may take longer than max.poll.interval.ms, and the consumer stays a member of its group.

Polling is what keeps a member in its group. So the work is done in a thread, the partitions are paused meanwhile, and
polling goes on; it returns nothing of a paused partition.

Usage: python examples/patterns/long_work.py [BOOTSTRAP_SERVERS] [TOPIC]
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, Producer

POLL_INTERVAL_MS_MAX = 6_000
WORK_S = 8.0


class Worker:
    def __init__(self, servers, topic, work):
        self.work = work
        self.threads = ThreadPoolExecutor(1)
        self.job = None  # the record that is being worked on, and its future
        self.assignments = 0
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{topic}-workers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": POLL_INTERVAL_MS_MAX,
                "max.poll.interval.ms": POLL_INTERVAL_MS_MAX,
            }
        )
        self.consumer.subscribe([topic], on_assign=self.assigned, on_revoke=self.revoked, on_lost=self.revoked)

    def assigned(self, consumer, partitions):
        self.assignments += 1
        consumer.assign(partitions)
        if self.job is not None:
            consumer.pause(partitions)

    def revoked(self, _consumer, partitions):
        """Another member will get the record again: its result must not be committed by this one."""
        if self.job is not None:
            message, _ = self.job
            if any((each.topic, each.partition) == (message.topic(), message.partition()) for each in partitions):
                self.job = None

    def poll(self):
        message = self.consumer.poll(0.5)
        if message is not None and not message.error():
            self.consumer.pause(self.consumer.assignment())
            self.job = message, self.threads.submit(self.work, message)
        if self.job is not None and self.job[1].done():
            message, result = self.job
            result.result()  # a failure ends the program, and the record is read again; or see retry_topics.py
            self.consumer.commit(message, asynchronous=False)
            self.job = None
            self.consumer.resume(self.consumer.assignment())

    def close(self):
        self.threads.shutdown()
        self.consumer.close()


def main(servers="localhost:9092", topic="videos"):
    done = []

    def work(message):
        time.sleep(WORK_S)
        done.append(message.value().decode())
        print(f"worked {WORK_S:g} s on {done[-1]}", flush=True)

    producer = Producer({"bootstrap.servers": servers})
    for video in ("first", "second"):
        producer.produce(topic, video)
    producer.flush(30)
    worker = Worker(servers, topic, work)
    while len(done) < 2 or worker.job is not None:
        worker.poll()
    worker.close()
    print(f"partitions were assigned {worker.assignments} time: the group saw no member leave")


if __name__ == "__main__":
    main(*sys.argv[1:])
