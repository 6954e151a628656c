"""`moldau verifiable-producer`: numbers that grow, and a line for what became of each."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from moldau.cli.failures import OK
from moldau.cli.kafka.commands.verifiable_producer import NUMBER_MAX
from moldau.cli.kafka.java_clients import AS_JAVA, java_client_config
from moldau.cli.kafka.performance.throttle import Throttle
from moldau.cli.kafka.verifiable.events import StopRequest, tell
from moldau.cli.librdkafka import cluster_metadata, kafka_error, open_client
from moldau.core.clock import SystemClock
from moldau.core.topic_names import topic_name_problem

CLIENT_ID = "producer-1"
WAIT_S = 0.1
FLUSH_S = 120.0
# Java's classes for what brokers and clients refuse, where their names don't follow from the error's.
_NOT_THERE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
_CLASSES: Mapping[int, str] = {
    KafkaError.TOPIC_EXCEPTION: "InvalidTopicException",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "UnknownTopicOrPartitionException",
    KafkaError._UNKNOWN_TOPIC: "UnknownTopicOrPartitionException",
    KafkaError._UNKNOWN_PARTITION: "UnknownTopicOrPartitionException",
    KafkaError._MSG_TIMED_OUT: "TimeoutException",
    KafkaError.REQUEST_TIMED_OUT: "TimeoutException",
    KafkaError.MSG_SIZE_TOO_LARGE: "RecordTooLargeException",
    KafkaError.NOT_ENOUGH_REPLICAS: "NotEnoughReplicasException",
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "NotEnoughReplicasAfterAppendException",
    KafkaError.NOT_LEADER_FOR_PARTITION: "NotLeaderOrFollowerException",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    KafkaError.INVALID_MSG: "CorruptRecordException",
    KafkaError._TRANSPORT: "NetworkException",
}


def exception_name(code: int, topic: str) -> str:
    """librdkafka may have given up a topic that can't be before it hears why."""
    if code in _NOT_THERE and topic_name_problem(topic) is not None:
        code = KafkaError.TOPIC_EXCEPTION
    return _CLASSES.get(code, "KafkaException")


def run(options: Namespace) -> int:
    config = java_client_config(options, client_id=CLIENT_ID, acks=options.acks, retries=0, partitioner=AS_JAVA)
    producer = open_client(Producer, config)
    cluster_metadata(producer, options)
    stop = StopRequest()
    run = _Run(producer, options, stop)
    run.send_all()
    producer.flush(FLUSH_S)
    tell("shutdown_complete")
    run.tell_summary()
    return OK


class _Run:
    def __init__(self, producer: Producer, options: Namespace, stop: StopRequest) -> None:
        self._producer = producer
        self._options = options
        self._stop = stop
        self._clock = SystemClock()
        self._start_ms = self._clock.now_ms()
        self._create_ms = options.message_create_time
        self._sent = self._acked = 0

    def send_all(self) -> None:
        tell("startup_complete")
        throttle = Throttle(self._options.throughput)
        wanted = self._options.max_messages if self._options.max_messages >= 0 else NUMBER_MAX
        while self._sent < wanted and not self._stop.is_set:
            self._send(self._sent)
            self._producer.poll(0)
            while not self._stop.is_set and (ahead_s := throttle.ahead_s(self._sent)) > 0:
                self._producer.poll(min(ahead_s, WAIT_S))

    def _send(self, number: int) -> None:
        prefix, keys = self._options.value_prefix, self._options.repeating_keys
        value = str(number) if prefix is None else f"{prefix}.{number}"
        key = None if keys is None else str(number % keys)
        self._sent += 1
        report = self._report(key, value)
        while True:
            try:
                self._producer.produce(
                    self._options.topic, value, key, on_delivery=report, timestamp=self._next_create_ms()
                )
                return
            except BufferError:
                self._producer.poll(WAIT_S)
            except KafkaException as wrong:
                report(kafka_error(wrong), None)
                return

    def _next_create_ms(self) -> int:
        """0 is none. It runs ahead as it does with Apache Kafka's tool."""
        if self._create_ms < 0:
            return 0
        create_ms: int = self._create_ms
        self._create_ms += self._clock.now_ms() - self._start_ms
        return create_ms

    def _report(self, key: str | None, value: str) -> Callable[[KafkaError | None, Message | None], None]:
        topic = self._options.topic

        def report(error: KafkaError | None, message: Message | None) -> None:
            if error is None and message is not None:
                self._acked += 1
                place = {"offset": message.offset(), "topic": topic, "partition": message.partition()}
                tell("producer_send_success", key=key, value=value, **place)
            elif error is not None:
                name = f"class org.apache.kafka.common.errors.{exception_name(error.code(), topic)}"
                tell("producer_send_error", topic=topic, key=key, value=value, exception=name, message=error.str())

        return report

    def tell_summary(self) -> None:
        elapsed_ms = max(1, self._clock.now_ms() - self._start_ms)
        tell(
            "tool_data",
            sent=self._sent,
            acked=self._acked,
            target_throughput=self._options.throughput,
            avg_throughput=1_000 * self._acked / elapsed_ms,
        )
