"""What a group has committed, asked for until its coordinator answers."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from moldau.spark.clients.librdkafka import ANSWER_S_MAX, COORDINATOR_MOVES

PAUSE_S = 0.1
PASSING = (*COORDINATOR_MOVES, KafkaError.UNSTABLE_OFFSET_COMMIT)


def committed(consumer: Consumer, places: list[TopicPartition]) -> list[TopicPartition]:
    """The offsets of the consumer's group; a coordinator that moves or loads is waited for: librdkafka does not."""
    deadline_s = time.monotonic() + ANSWER_S_MAX
    while True:
        try:
            return list(consumer.committed(places, timeout=ANSWER_S_MAX))
        except KafkaException as wrong:
            if wrong.args[0].code() not in PASSING or time.monotonic() > deadline_s:
                raise
        time.sleep(PAUSE_S)
