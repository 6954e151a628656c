"""Settings from what was measured: they outlast it, and are no shorter than Kafka's defaults where that would harm."""

from __future__ import annotations

import pytest

from moldau.cli.verify.outcome import Outcome
from moldau.cli.verify.report import measured_by
from moldau.cli.verify.settings import (
    MARGIN,
    Measured,
    as_properties,
    backoff_ms,
    consumer_settings,
    producer_settings,
    retries_for,
)


def values(measured: Measured) -> dict[str, int]:
    return {each.key: each.value for each in [*producer_settings(measured), *consumer_settings(measured)]}


def test_waits_double_up_to_the_longest_and_lose_the_jitter() -> None:
    assert backoff_ms(1) == pytest.approx(80)
    assert backoff_ms(5) == pytest.approx(0.8 * (100 + 200 + 400 + 800 + 1_000))


@pytest.mark.parametrize("outage_ms", [1, 80, 81, 1_000, 5_325, 60_000])
def test_retries_outlast_an_outage_and_one_less_would_not(outage_ms: float) -> None:
    count = retries_for(outage_ms)
    assert backoff_ms(count) >= outage_ms
    assert count == 1 or backoff_ms(count - 1) < outage_ms


def test_quick_elections_leave_kafkas_defaults() -> None:
    assert values(Measured(election_ms=200, unacknowledged_ms=1_775)) == {
        "retry.backoff.ms": 100,
        "retry.backoff.max.ms": 1_000,
        "retries": retries_for(MARGIN * 1_775),
        "request.timeout.ms": 30_000,
        "delivery.timeout.ms": 120_000,
    }


def test_slow_elections_raise_them() -> None:
    found = values(Measured(election_ms=40_100))
    assert (found["request.timeout.ms"], found["delivery.timeout.ms"]) == (121_000, 242_000)
    assert backoff_ms(found["retries"]) >= 3 * 40_100


@pytest.mark.parametrize(
    ("pause_ms", "session_ms", "heartbeat_ms"), [(400, 9_000, 3_000), (10_001, 31_000, 3_000), (1, 9_000, 3_000)]
)
def test_sessions_outlast_restarts(pause_ms: float, session_ms: int, heartbeat_ms: int) -> None:
    assert values(Measured(pause_ms=pause_ms)) == {
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": heartbeat_ms,
    }


def test_nothing_follows_from_nothing() -> None:
    assert values(Measured()) == {}


def test_lines_to_paste_are_properties() -> None:
    lines = as_properties("of producers", producer_settings(Measured(election_ms=500)))
    assert lines[0] == "# of producers"
    assert [line for line in lines if not line.startswith("#")] == [
        "retry.backoff.ms=100", "retry.backoff.max.ms=1000", "retries=5", "request.timeout.ms=30000",
        "delivery.timeout.ms=120000",
    ]  # fmt: skip


def test_the_longest_of_all_scenarios_counts_but_for_the_unclean_one() -> None:
    election = Outcome("leader-election", figures={"acknowledged_ms": [300.0, 900.0], "unacknowledged_ms": [950.0]})
    unclean = Outcome("unclean-election", figures={"unacknowledged_ms": [9_000.0]})
    members = Outcome(
        "rolling-restart-consumers", figures={"classic_pause_ms": [10.0], "static_pause_ms": [70.0, 20.0]}
    )
    assert measured_by([election, unclean, members]) == Measured(900.0, 950.0, 70.0)
