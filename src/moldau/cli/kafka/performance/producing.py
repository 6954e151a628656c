"""`moldau producer-perf`: Apache Kafka's ProducerPerformance. Why it is made so: docs/decisions/0035."""

from __future__ import annotations

import time
import uuid
from argparse import Namespace

from confluent_kafka import KafkaError, Message, Producer

from moldau.cli.failures import OK, CommandFailed
from moldau.cli.kafka.commands.producer_perf import NUMBER_MAX, TRANSACTION_MS
from moldau.cli.kafka.java_clients import java_client_config
from moldau.cli.kafka.performance.metrics import Metrics
from moldau.cli.kafka.performance.payloads import Message as Outgoing
from moldau.cli.kafka.performance.payloads import Payloads, payloads_of
from moldau.cli.kafka.performance.statistics import Statistics
from moldau.cli.kafka.performance.throttle import Throttle
from moldau.cli.librdkafka import open_client, topic_metadata

CLIENT_ID = "perf-producer-client"
QUEUE_KIB = 32 * 1024  # as much as Java's producer holds
QUEUE_RECORDS = 1_000_000
FULL_SHARE = 0.9  # of the queue: a batch that does not fit is not taken
PAUSE_S = 0.002
FLUSH_S = 120.0


def run(options: Namespace) -> int:
    payloads = payloads_of(options)
    metrics = Metrics()
    config = java_client_config(
        options,
        client_id=CLIENT_ID,
        **{"queue.buffering.max.kbytes": QUEUE_KIB, "queue.buffering.max.messages": QUEUE_RECORDS},
        **(metrics.settings if options.print_metrics else {}),
    )
    transactional_id = options.transactional_id or config.get("transactional.id")
    if options.transaction_duration_ms is not None and not transactional_id:
        transactional_id = f"performance-producer-{uuid.uuid4()}"
    if transactional_id:
        config["transactional.id"] = transactional_id
    producer = open_client(Producer, config)
    topic_metadata(producer, options.topic, options, may_appear=True)
    if transactional_id:
        producer.init_transactions(options.timeout)
    run = _Run(producer, options, payloads, queue_bytes=int(config["queue.buffering.max.kbytes"]) * 1024)
    run.send_all(in_transactions=bool(transactional_id))
    run.print_total()
    if options.print_metrics:
        producer.poll(0.3)
        metrics.print_all()
    run.check()
    return OK


class _Run:
    def __init__(self, producer: Producer, options: Namespace, payloads: Payloads, *, queue_bytes: int) -> None:
        self._producer = producer
        self._options = options
        self._payloads = payloads
        self._queue_bytes = queue_bytes * FULL_SHARE
        self._waiting_bytes = 0
        self._failed = 0
        self._failure = ""
        self._statistics = Statistics(options.reporting_interval)
        self._steady: Statistics | None = None
        if options.warmup_records:
            print(
                f"Warmup first {options.warmup_records} records."
                " Steady state results will print after the complete test summary."
            )

    def send_all(self, *, in_transactions: bool) -> None:
        sent, total = 0, self._options.num_records
        throttle = Throttle(self._options.throughput)
        duration_s = (self._options.transaction_duration_ms or TRANSACTION_MS) / 1_000
        begun_s: float | None = None
        while sent < total:
            if in_transactions and begun_s is None:
                self._producer.begin_transaction()
                begun_s = time.monotonic()
            count = min(throttle.records_at_once, total - sent, self._until_steady(sent))
            self._send(self._payloads(sent, count), self._steady)
            sent += count
            if begun_s is not None and time.monotonic() - begun_s >= duration_s:
                self._commit()
                begun_s = None
            self._producer.poll(0)
            while (ahead_s := throttle.ahead_s(sent)) > 0:
                self._producer.poll(ahead_s)
        if begun_s is not None:
            self._commit()
        self._producer.flush(FLUSH_S)

    def _until_steady(self, sent: int) -> int:
        """How many more may be sent before the steady state begins."""
        warmup = self._options.warmup_records
        if sent == warmup and warmup > 0:
            self._steady = Statistics(self._options.reporting_interval, is_steady_state=True)
            self._statistics.be_quiet()
        return warmup - sent if sent < warmup else NUMBER_MAX

    def _send(self, batch: list[Outgoing], steady: Statistics | None) -> None:
        size = sum(len(each["value"]) for each in batch)
        while self._waiting_bytes and self._is_full(size, len(batch)):
            self._producer.poll(PAUSE_S)
        start_s, acknowledged = time.monotonic(), self._statistics.acknowledged

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            now_s, length = time.monotonic(), len(message)
            self._waiting_bytes -= length
            if error is not None:
                self._note(error.str())
                return
            latency_ms = int((now_s - start_s) * 1_000)
            acknowledged(latency_ms, length, now_s)
            if steady is not None:
                steady.acknowledged(latency_ms, length, now_s)

        self._waiting_bytes += size
        taken = self._producer.produce_batch(self._options.topic, batch, on_delivery=on_delivery)
        if taken < len(batch):
            self._refuse(batch, taken)

    def _is_full(self, size: int, count: int) -> bool:
        return (
            self._waiting_bytes + size > self._queue_bytes or len(self._producer) + count > QUEUE_RECORDS * FULL_SHARE
        )

    def _refuse(self, batch: list[Outgoing], taken: int) -> None:
        """librdkafka takes no record that is too large; the others of the batch are on their way."""
        refused = [(each, each.pop("_error")) for each in batch if "_error" in each]
        self._waiting_bytes -= sum(len(each["value"]) for each, _ in refused)
        reason = refused[0][1] if refused else None
        told = reason.str() if isinstance(reason, KafkaError) else str(reason or "the producer takes no more")
        for _ in range(len(batch) - taken):
            self._note(told)

    def _note(self, reason: str) -> None:
        self._failed += 1
        self._failure = self._failure or reason

    def _commit(self) -> None:
        self._producer.flush(FLUSH_S)
        self._producer.commit_transaction(FLUSH_S)

    def print_total(self) -> None:
        self._statistics.print_total()
        if self._steady is not None:
            self._steady.print_total()

    def check(self) -> None:
        failed = self._failed + len(self._producer)
        if failed:
            raise CommandFailed(f"{failed} records were not delivered: {self._failure or 'no answer in time'}")
