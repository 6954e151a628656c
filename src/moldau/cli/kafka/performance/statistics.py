"""Latencies and rates of a test that sends, in the lines of Apache Kafka's ProducerPerformance."""

from __future__ import annotations

import time
from collections import Counter

MIB = 1024 * 1024
PERCENTILES = (0.5, 0.95, 0.99, 0.999)


class Statistics:
    """Of every record: latencies are counted by the millisecond, so percentiles are exact and memory is small."""

    def __init__(self, interval_ms: int, *, is_steady_state: bool = False) -> None:
        self._interval_s = interval_ms / 1_000
        self._is_steady_state = is_steady_state
        self._is_quiet = False
        self._start_s = self._window_start_s = time.monotonic()
        self._latencies: Counter[int] = Counter()
        self._window: Counter[int] = Counter()
        self._bytes = 0
        self._window_bytes = 0
        self._windows = 0

    def be_quiet(self) -> None:
        """Only the summary is printed from here on."""
        self._is_quiet = True

    def acknowledged(self, latency_ms: int, size: int, now_s: float) -> None:
        self._window[latency_ms] += 1
        self._window_bytes += size
        if now_s - self._window_start_s >= self._interval_s:
            self._end_window(now_s)

    def _end_window(self, now_s: float) -> None:
        if self._is_steady_state and self._windows == 0:
            print("In steady state.")
        if not self._is_quiet:
            count, elapsed_s = self._window.total(), now_s - self._window_start_s
            print(
                f"{count} records sent, {count / elapsed_s:.1f} records/sec"
                f" ({self._window_bytes / elapsed_s / MIB:.2f} MB/sec), {_average(self._window):.1f} ms avg latency,"
                f" {max(self._window):.1f} ms max latency.",
                flush=True,
            )
        self._windows += 1
        self._keep_window()
        self._window_start_s = now_s

    def _keep_window(self) -> None:
        self._latencies.update(self._window)
        self._window.clear()
        self._bytes += self._window_bytes
        self._window_bytes = 0

    def print_total(self) -> None:
        self._keep_window()
        elapsed_s = max(time.monotonic() - self._start_s, 0.001)
        count = self._latencies.total()
        longest = max(self._latencies, default=0)
        p50, p95, p99, p999 = _percentiles(self._latencies)
        print(
            f"{count}{' steady state' if self._is_steady_state else ''} records sent,"
            f" {count / elapsed_s:f} records/sec ({self._bytes / elapsed_s / MIB:.2f} MB/sec),"
            f" {_average(self._latencies):.2f} ms avg latency, {longest:.2f} ms max latency,"
            f" {p50} ms 50th, {p95} ms 95th, {p99} ms 99th, {p999} ms 99.9th."
        )


def _average(latencies: Counter[int]) -> float:
    return sum(ms * count for ms, count in latencies.items()) / max(1, latencies.total())


def _percentiles(latencies: Counter[int]) -> list[int]:
    """The latencies at these places of all of them in order."""
    found: list[int] = []
    total, passed = latencies.total(), 0
    places = [min(int(each * total), max(0, total - 1)) for each in PERCENTILES]
    for ms, count in sorted(latencies.items()):
        passed += count
        while len(found) < len(places) and passed > places[len(found)]:
            found.append(ms)
    return found or [0] * len(places)
