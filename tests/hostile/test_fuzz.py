"""Noise of every API and version beside a client whose answers are checked; `scripts/fuzz` has long runs."""

from __future__ import annotations

import moldau
from moldau.broker.handlers import TABLE
from moldau.broker.handlers.between_brokers import BETWEEN_BROKERS
from moldau.broker.handlers.telemetry import TELEMETRY
from tests.hostile.fuzz import Result, fuzz
from tests.scraping import scrape

FRAMES = 5_000
SEED = 20_260
OF_CLIENTS = {row.request.__name__ for row in TABLE}
OF_CLIENTS_METRICS = {row.request.__name__ for row in TELEMETRY}
OF_BROKERS = {row.request.__name__ for row in BETWEEN_BROKERS}


def check(result: Result, asked: set[str]) -> None:
    assert not result.trouble, "\n".join(result.trouble[:10])
    assert result.frames >= FRAMES
    assert result.neighbour_answers > 100
    assert not asked - result.answered.keys(), "noise that is never answered finds nothing"


def test_noise_gets_answers_and_harms_nobody() -> None:
    with moldau.run(metrics=True) as broker:
        result = fuzz(broker, frames=FRAMES, seed=SEED)
        assert scrape(broker.metrics_url).value("moldau_metrics_failures_total") == 0
    check(result, OF_CLIENTS | OF_CLIENTS_METRICS)


def test_noise_of_brokers_gets_answers_from_a_broker_of_a_cluster() -> None:
    with moldau.run(brokers=1) as cluster:
        [broker] = cluster.brokers.values()
        result = fuzz(broker, frames=FRAMES, seed=SEED + 1)
    check(result, OF_CLIENTS | OF_BROKERS)
