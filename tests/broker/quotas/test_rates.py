"""Throttle times beside those of Apache Kafka's own Rate and TokenBucket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.quotas.rates import SampledRate, TokenBucket, Windows

# What Apache Kafka 4.3.1 says: for each step the milliseconds before it, the amount, and the throttle time after it.
CASES = json.loads((Path(__file__).parent / "throttle_times.json").read_text())
WINDOWS = Windows()


def throttle_times(case: dict[str, Any]) -> list[int]:
    windows, limit, now_ms = Windows(case["samples"], case["size_ms"]), case["limit"], 1_000_000
    rate, bucket = SampledRate(), TokenBucket()
    found = []
    for pause_ms, amount, _ in case["steps"]:
        now_ms += pause_ms
        if case["kind"] == "rate":
            rate.record(amount, windows, now_ms)
            found.append(rate.throttle_ms(limit, windows, now_ms))
        else:
            bucket.take(amount, limit, windows, now_ms)
            found.append(bucket.throttle_ms(limit, windows, now_ms))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']}-{case['samples']}-{case['size_ms']}")
def test_throttle_times_are_those_of_apache_kafka(case: dict[str, Any]) -> None:
    expected = [throttle_ms for *_, throttle_ms in case["steps"]]
    assert any(expected)
    assert throttle_times(case) == expected


def test_a_burst_counts_as_if_the_client_had_been_idle_before() -> None:
    rate = SampledRate()
    rate.record(1_000, WINDOWS, 0)
    assert rate.throttle_ms(100, WINDOWS, 0) == 0  # 1,000 in ten whole windows
    rate.record(500, WINDOWS, 0)
    assert rate.throttle_ms(100, WINDOWS, 0) == 5_000
    assert rate.throttle_ms(100, WINDOWS, 5_000) == 5_000  # ten windows it is still, as long as it began in them


def test_what_is_older_than_all_windows_does_not_count() -> None:
    rate = SampledRate()
    rate.record(10_000, WINDOWS, 0)
    assert rate.total(WINDOWS, 10_999) == 10_000
    assert rate.total(WINDOWS, 11_000) == 0


def test_a_bucket_may_be_overdrawn_once() -> None:
    bucket = TokenBucket()
    bucket.take(1_100, 100, WINDOWS, 0)
    assert bucket.throttle_ms(100, WINDOWS, 0) == 0
    bucket.take(200, 100, WINDOWS, 0)
    assert bucket.throttle_ms(100, WINDOWS, 0) == 2_000
    assert bucket.throttle_ms(100, WINDOWS, 1_500) == 500
    assert bucket.throttle_ms(100, WINDOWS, 2_000) == 0


def test_a_throttle_time_fits_the_wire() -> None:
    rate = SampledRate()
    rate.record(2.0**62, WINDOWS, 0)
    assert rate.throttle_ms(1e-9, WINDOWS, 0) == 2**31 - 1


@pytest.mark.parametrize("limit", [5e-324, 1e-300, 1e-9])
def test_a_limit_next_to_nothing_pauses_for_as_long_as_the_wire_can_say(limit: float) -> None:
    rate, bucket = SampledRate(), TokenBucket()
    rate.record(1e9, WINDOWS, 0)
    bucket.take(1e9, limit, WINDOWS, 0)
    assert rate.throttle_ms(limit, WINDOWS, 0) == bucket.throttle_ms(limit, WINDOWS, 0) == 2**31 - 1


@pytest.mark.parametrize("limit", [float("inf"), 1.7e308])
def test_a_limit_beyond_all_measure_is_none(limit: float) -> None:
    rate, bucket = SampledRate(), TokenBucket()
    for now_ms in (0, 0, 1_000):
        rate.record(1e9, WINDOWS, now_ms)
        bucket.take(1e9, limit, WINDOWS, now_ms)
        assert rate.throttle_ms(limit, WINDOWS, now_ms) == bucket.throttle_ms(limit, WINDOWS, now_ms) == 0
    bucket.take(11, 1.0, WINDOWS, 2_000)
    assert bucket.throttle_ms(1.0, WINDOWS, 2_000) == 0, "a smaller limit begins with all that it allows"
