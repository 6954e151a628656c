"""`moldau consumer-perf`: Apache Kafka's ConsumerPerformance."""

from __future__ import annotations

import gc
import random
import sys
from argparse import Namespace
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message

from moldau.cli.connection import add_kafka_connection_options
from moldau.cli.failures import OK
from moldau.cli.kafka.java_clients import java_client_config, warn_of_old_option
from moldau.cli.kafka.performance.dates import DEFAULT_PATTERN, pattern, shown
from moldau.cli.kafka.performance.metrics import Metrics
from moldau.cli.librdkafka import cluster_metadata, open_client
from moldau.cli.parsing import Parser, whole
from moldau.core.clock import SystemClock

EXAMPLES = """\
examples:
  moldau consumer-perf --topic orders --num-records 1000000
  moldau consumer-perf --include 'orders-.*' --num-records 1000000 --show-detailed-stats --reporting-interval 1000
  moldau consumer-perf --bootstrap-server kafka-1:9092 --topic orders --messages 100000 --group perf --timeout 30000
"""

CLIENT_ID = "perf-consumer-client"
MIB = 1024 * 1024
AT_ONCE = 10_000
POLL_S = 0.1
FETCH_BYTES = 1024 * 1024
SOCKET_BYTES = 2 * 1024 * 1024
TIMEOUT_MS = 10_000
REPORT_MS = 5_000
QUEUED_RECORDS = 1_000_000  # librdkafka reads ahead while we count; bytes limit it, too
QUEUE_PAUSE_MS = 1  # librdkafka would rest for a second when what it read ahead fills its queue
NUMBER_MAX = 2**63 - 1
FIELDS = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
MORE_FIELDS = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    metrics = Metrics()
    consumer = open_client(Consumer, _config(options, metrics))
    cluster_metadata(consumer, options)
    if not options.hide_header:
        first = "time, threadId" if options.show_detailed_stats else "start.time, end.time"
        print(f"{first}, {FIELDS}, {MORE_FIELDS}", flush=True)
    run = _Run(consumer, options)
    gc.disable()  # ten thousand messages at a time make no cycles, and would be looked through for them
    try:
        run.read_all()
    finally:
        consumer.close()
        gc.enable()
    if not options.show_detailed_stats:
        run.print_total()
    if options.print_metrics:
        metrics.print_all()
    return OK


class _Run:
    def __init__(self, consumer: Consumer, options: Namespace) -> None:
        self._consumer = consumer
        self._options = options
        self._clock = SystemClock()
        self._start_ms = self._end_ms = self._joining_ms = self._clock.now_ms()
        self._records = self._bytes = 0
        self._join_ms = self._round_join_ms = 0

    def read_all(self) -> None:
        topics = [self._options.topic] if self._options.include is None else [f"^{self._options.include}"]
        self._consumer.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke)
        reported_ms = last_ms = now_ms = self._start_ms
        reported = (0, 0)
        while self._records < self._options.num_records and now_ms - last_ms <= self._options.record_timeout_ms:
            batch = self._consumer.consume(min(AT_ONCE, self._options.num_records - self._records), POLL_S)
            now_ms = self._clock.now_ms()
            if batch:
                last_ms = now_ms
                self._count(batch)
            if batch and now_ms - reported_ms >= self._options.reporting_interval:
                self._report(reported_ms, now_ms, reported)
                reported_ms, reported = now_ms, (self._records, self._bytes)
                self._round_join_ms = 0
        self._end_ms = self._clock.now_ms()
        if self._records < self._options.num_records:
            print(
                "WARNING: Exiting before consuming the expected number of records: timeout"
                f" ({self._options.record_timeout_ms} ms) exceeded."
                " You can use the --timeout option to increase the timeout."
            )

    def _count(self, batch: list[Any]) -> None:
        # No loop of Python's: at a million records a second it would be most of the work.
        broken = next(filter(None, map(Message.error, batch)), None)
        if broken is not None:
            raise KafkaException(broken)
        self._bytes += sum(map(len, filter(None, map(Message.key, batch))))
        self._bytes += sum(map(len, filter(None, map(Message.value, batch))))
        self._records += len(batch)

    def _on_revoke(self, _consumer: Consumer, _partitions: object) -> None:
        self._joining_ms = self._clock.now_ms()

    def _on_assign(self, _consumer: Consumer, _partitions: object) -> None:
        elapsed_ms = self._clock.now_ms() - self._joining_ms
        self._join_ms += elapsed_ms
        self._round_join_ms += elapsed_ms

    def _report(self, since_ms: int, now_ms: int, reported: tuple[int, int]) -> None:
        if not self._options.show_detailed_stats:
            return
        records, mib = self._records - reported[0], (self._bytes - reported[1]) / MIB
        elapsed_s, fetch_ms = (now_ms - since_ms) / 1_000, now_ms - since_ms - self._round_join_ms
        print(
            f"{shown(now_ms / 1_000, self._options.date_format)}, 0, {self._bytes / MIB:.4f}, {mib / elapsed_s:.4f},"
            f" {self._records}, {records / elapsed_s:.4f}, {self._round_join_ms}, {fetch_ms},"
            f" {_rate(mib, fetch_ms):.4f}, {_rate(records, fetch_ms):.4f}",
            flush=True,
        )

    def print_total(self) -> None:
        elapsed_ms, mib = self._end_ms - self._start_ms, self._bytes / MIB
        fetch_ms = elapsed_ms - self._join_ms
        start, end = (shown(at / 1_000, self._options.date_format) for at in (self._start_ms, self._end_ms))
        print(
            f"{start}, {end}, {mib:.4f}, {_rate(mib, elapsed_ms):.4f}, {self._records},"
            f" {_rate(self._records, elapsed_ms):.4f}, {self._join_ms}, {fetch_ms},"
            f" {_rate(mib, fetch_ms):.4f}, {_rate(self._records, fetch_ms):.4f}"
        )


def _rate(amount: float, elapsed_ms: int) -> float:
    return 1_000 * amount / elapsed_ms if elapsed_ms > 0 else 0.0


def _config(options: Namespace, metrics: Metrics) -> dict[str, Any]:
    config = java_client_config(
        options,
        client_id=CLIENT_ID,
        **{"check.crcs": False, "queued.min.messages": QUEUED_RECORDS, "fetch.queue.backoff.ms": QUEUE_PAUSE_MS},
        **{"allow.auto.create.topics": True},
        **(metrics.settings if options.print_metrics else {}),
    )
    # What has an option of its own is said by the option, as Apache Kafka's tool has it.
    return config | {
        "group.id": options.group,
        "auto.offset.reset": "latest" if options.from_latest else "earliest",
        "max.partition.fetch.bytes": options.fetch_size,
        "socket.receive.buffer.bytes": options.socket_buffer_size,
    }


def parse(arguments: list[str]) -> Namespace:
    parser = Parser(
        prog="moldau consumer-perf", description="Read records as fast as it goes, and say how fast.", epilog=EXAMPLES
    )
    count, size = whole(1, NUMBER_MAX, "number"), whole(1, 1_000_000_000, "size")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--topic", help="the topic to read")
    what.add_argument("--include", metavar="PATTERN", help="every topic whose name fits this regular expression")
    parser.add_argument(
        "--num-records",
        "--messages",
        dest="num_records",
        type=count,
        required=True,
        metavar="N",
        help="how many to read",
    )
    parser.add_argument("--group", default=f"perf-consumer-{random.randrange(100_000)}", help="of consumers")
    parser.add_argument("--fetch-size", type=size, default=FETCH_BYTES, metavar="BYTES", help="of a partition at once")
    parser.add_argument("--from-latest", action="store_true", help="where the group has no offsets, only what comes")
    parser.add_argument("--socket-buffer-size", type=size, default=SOCKET_BYTES, metavar="BYTES")
    parser.add_argument("--print-metrics", action="store_true", help="librdkafka's numbers at the end")
    parser.add_argument("--show-detailed-stats", action="store_true", help="a line each --reporting-interval")
    parser.add_argument("--reporting-interval", type=count, default=REPORT_MS, metavar="MS")
    parser.add_argument(
        "--timeout", dest="record_timeout_ms", type=whole(0, NUMBER_MAX, "number"), default=TIMEOUT_MS, metavar="MS",
        help=f"longest time without a record ({TIMEOUT_MS})",
    )  # fmt: skip
    parser.add_argument("--date-format", type=pattern, default=DEFAULT_PATTERN, help="of Java's SimpleDateFormat")
    parser.add_argument("--hide-header", action="store_true")
    add_kafka_connection_options(
        parser, files=("--command-config", "--consumer.config"), properties=("--command-property",)
    )
    options = parser.parse_args(arguments)
    if "--messages" in arguments:
        print("Warning: --messages is deprecated. Use --num-records instead.", file=sys.stderr)
    if "--consumer.config" in arguments:
        warn_of_old_option("--consumer.config", "--command-config")
    return options
