"""Request and reply: the request names the topic and the partition for its answer, and an id that the answer repeats.

Each client reads one partition of the topic of replies, assigned by itself: replies need no group and no offsets.

Usage: python examples/patterns/request_reply.py [BOOTSTRAP_SERVERS] [TOPIC]
"""

import sys
from concurrent.futures import Future
from threading import Event, Thread
from uuid import uuid4

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

ANSWER_S_MAX = 30


class Client:
    def __init__(self, servers, topic, replies, partition):
        self.topic = topic
        self.reply_to = f"{replies}/{partition}"
        self.waiting = {}
        self.closed = Event()
        self.producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        self.consumer = Consumer({"bootstrap.servers": servers, "group.id": "unused", "enable.auto.commit": False})
        # The end of the partition as it is before the first request: no reply can be missed.
        end = self.consumer.get_watermark_offsets(TopicPartition(replies, partition), timeout=ANSWER_S_MAX)[1]
        self.consumer.assign([TopicPartition(replies, partition, end)])
        self.reader = Thread(target=self.read)
        self.reader.start()

    def ask(self, value):
        """The answer as a future."""
        request_id, answer = uuid4().hex, Future()
        self.waiting[request_id] = answer
        headers = {"request-id": request_id, "reply-to": self.reply_to}
        self.producer.produce(self.topic, value=value, headers=headers)
        self.producer.poll(0)
        return answer

    def read(self):
        while not self.closed.is_set():
            message = self.consumer.poll(0.1)
            if message is None or message.error():
                continue
            answer = self.waiting.pop(dict(message.headers())["request-id"].decode(), None)
            if answer is not None:  # else a duplicate, or nobody waits for it any more
                answer.set_result(message.value())

    def close(self):
        self.closed.set()
        self.reader.join()
        self.producer.flush(ANSWER_S_MAX)
        self.consumer.close()


def serve(servers, topic, handle, stop):
    """At least once: a request is answered before its offset is committed, so a crash may answer it twice."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{topic}-servers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    while not stop.is_set():
        message = consumer.poll(0.1)
        if message is None or message.error():
            continue
        headers = dict(message.headers())
        replies, _, partition = headers["reply-to"].decode().rpartition("/")
        answer = {"request-id": headers["request-id"]}
        producer.produce(replies, partition=int(partition), value=handle(message.value()), headers=answer)
        producer.flush(ANSWER_S_MAX)
        consumer.commit(message, asynchronous=False)
    consumer.close()


def main(servers="localhost:9092", topic="prices"):
    replies = f"{topic}.replies"
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics([NewTopic(topic, 2), NewTopic(replies, 2)]).values():
        created.result(ANSWER_S_MAX)
    stop = Event()
    server = Thread(target=serve, args=(servers, topic, lambda drink: b"3 euros for " + drink, stop))
    server.start()
    one, other = Client(servers, topic, replies, 0), Client(servers, topic, replies, 1)
    asked = [one.ask("coffee"), other.ask("tea"), one.ask("water")]
    for answer in asked:
        print(answer.result(ANSWER_S_MAX).decode())
    one.close()
    other.close()
    stop.set()
    server.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
