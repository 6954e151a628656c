"""Activity tracking: many small events, keyed by user, counted by a group of consumers that share the partitions.

Events of a user stay in order, because a key has one partition and a partition has one consumer of the group. Sending
does not wait: failures come back through a callback.

Usage: python examples/patterns/activity_tracking.py [BOOTSTRAP_SERVERS] [TOPIC]
"""

import json
import sys
import time
from collections import Counter
from threading import Event, Thread

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

EVENTS = 10_000
PARTITIONS = 4
WAIT_S_MAX = 60.0
PAGES = ("/", "/coffee", "/cart")


class Tracker:
    """Sends events in batches; `lost` counts those that the broker did not take within a minute."""

    def __init__(self, servers, topic):
        self.topic = topic
        self.lost = 0
        self.producer = Producer(
            {
                "bootstrap.servers": servers,
                "linger.ms": 50,  # wait that long for a fuller batch
                "compression.type": "zstd",
                "message.timeout.ms": 60_000,
                "on_delivery": self.delivered,
            }
        )

    def delivered(self, error, _message):
        self.lost += error is not None

    def track(self, user, page):
        event = json.dumps({"page": page, "at": time.time()})
        while True:
            try:
                self.producer.produce(self.topic, key=user, value=event)
                break
            except BufferError:  # the queue is full: let it send
                self.producer.poll(0.1)
        self.producer.poll(0)

    def close(self):
        self.lost += self.producer.flush(60)


class ViewCounter(Thread):
    """One member of the group; offsets are committed after the events were counted."""

    def __init__(self, servers, topic):
        super().__init__()
        self.views = Counter()
        self.partitions = 0
        self.stopped = Event()
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{topic}-counters",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self.consumer.subscribe([topic], on_assign=self.assigned)

    def assigned(self, _consumer, partitions):
        self.partitions = len(partitions)

    def run(self):
        while not self.stopped.is_set():
            events = [each for each in self.consumer.consume(500, timeout=0.2) if not each.error()]
            if events:
                self.views.update(json.loads(each.value())["page"] for each in events)
                self.consumer.commit(asynchronous=False)
        self.consumer.close()


def wait_for(condition):
    deadline_s = time.monotonic() + WAIT_S_MAX
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0.05)


def main(servers="localhost:9092", topic="page-views"):
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS)])[topic].result(30)
    counters = [ViewCounter(servers, topic), ViewCounter(servers, topic)]
    for counter in counters:
        counter.start()
    wait_for(lambda: all(counter.partitions == PARTITIONS // 2 for counter in counters))
    tracker = Tracker(servers, topic)
    for number in range(EVENTS):
        tracker.track(f"user-{number % 100}", PAGES[number % len(PAGES)])
    tracker.close()
    wait_for(lambda: sum(counter.views.total() for counter in counters) >= EVENTS - tracker.lost)
    for counter in counters:
        counter.stopped.set()
        counter.join()
    views = sum((counter.views for counter in counters), Counter())
    print(f"sent {EVENTS}, lost {tracker.lost}, counted {views.total()}: {dict(sorted(views.items()))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
