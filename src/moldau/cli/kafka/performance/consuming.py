"""`moldau consumer-perf`: Apache Kafka's ConsumerPerformance."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from confluent_kafka import Consumer

from moldau.cli.failures import OK
from moldau.cli.kafka.java_clients import java_client_config
from moldau.cli.kafka.performance.dates import shown
from moldau.cli.kafka.performance.group_counting import MEMBER_SETTINGS, GroupCounting
from moldau.cli.kafka.performance.metrics import Metrics
from moldau.cli.librdkafka import cluster_metadata, open_client
from moldau.cli.wire import cluster_of
from moldau.core.clock import SystemClock

CLIENT_ID = "perf-consumer-client"
MIB = 1024 * 1024
POLL_S = 0.1
FIELDS = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
MORE_FIELDS = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"


def run(options: Namespace) -> int:
    metrics = Metrics()
    config = _config(options, metrics)
    consumer = open_client(Consumer, config)
    cluster_metadata(consumer, options)
    if not options.hide_header:
        first = "time, threadId" if options.show_detailed_stats else "start.time, end.time"
        print(f"{first}, {FIELDS}, {MORE_FIELDS}", flush=True)
    with cluster_of(config, timeout_s=options.timeout) as cluster:
        counting = GroupCounting(consumer, cluster, config)
        run = _Run(counting, options)
        try:
            run.read_all()
        finally:
            counting.close()
            consumer.close()
    if not options.show_detailed_stats:
        run.print_total()
    if options.print_metrics:
        metrics.print_all()
    return OK


class _Run:
    def __init__(self, counting: GroupCounting, options: Namespace) -> None:
        self._counting = counting
        self._options = options
        self._clock = SystemClock()
        self._start_ms = self._end_ms = self._joining_ms = self._clock.now_ms()
        self._records = self._bytes = 0
        self._join_ms = self._round_join_ms = 0

    def read_all(self) -> None:
        topics = [self._options.topic] if self._options.include is None else [f"^{self._options.include}"]
        self._counting.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke)
        reported_ms = last_ms = now_ms = self._start_ms
        reported = (0, 0)
        while self._records < self._options.num_records and now_ms - last_ms <= self._options.record_timeout_ms:
            missing = self._options.num_records - self._records
            found = self._counting.next(timeout_s=POLL_S, records_max=missing)
            now_ms = self._clock.now_ms()
            if found is not None and found.records:
                last_ms = now_ms
                self._records += found.records
                self._bytes += found.content_bytes
            if found is not None and now_ms - reported_ms >= self._options.reporting_interval:
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

    def _on_revoke(self) -> None:
        self._joining_ms = self._clock.now_ms()

    def _on_assign(self) -> None:
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
        **{"allow.auto.create.topics": True},
        **(metrics.settings if options.print_metrics else {}),
    )
    # What has an option of its own is said by the option, as Apache Kafka's tool has it.
    return config | {
        **MEMBER_SETTINGS,
        "group.id": options.group,
        "auto.offset.reset": "latest" if options.from_latest else "earliest",
        "max.partition.fetch.bytes": options.fetch_size,
        "socket.receive.buffer.bytes": options.socket_buffer_size,
    }
