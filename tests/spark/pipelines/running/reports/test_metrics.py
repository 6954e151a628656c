"""Figures of a pipeline as Prometheus reads them."""

from __future__ import annotations

import re
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from moldau.spark.pipelines.running.reports.metrics import FIGURES, MetricsServer, exposition

STATUS: dict[str, Any] = {
    "state": "running",
    "rows": 12_345_678,
    "rows_a_second": 2.5,
    "batch": 4,
    "batch_ms": 1250,
    "restarts": 1,
    "lags": {"web/orders/0": 7},
    "watermark": "2026-01-31T12:00:00.000Z",
    "broken": {'rule "one"': 2},
    "rejected": {"orders": 3},
}
SAMPLE = re.compile(r'^(\w+)(\{(?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)*\}) (\S+)$')


def samples(page: str) -> dict[str, float]:
    """Every line that is no comment, which has to be a sample."""
    found = {}
    for line in page.splitlines():
        if not line.startswith("#"):
            matched = SAMPLE.match(line)
            assert matched, line
            found[matched[1] + matched[2]] = float(matched[3])
    return found


def test_every_figure_is_there() -> None:
    page = exposition("shop", {"copies": STATUS})
    own = 'pipeline="shop",query="copies"'
    assert samples(page) == {
        f"moldau_query_running{{{own}}}": 1,
        f"moldau_query_rows_total{{{own}}}": 12_345_678,
        f"moldau_query_rows_per_second{{{own}}}": 2.5,
        f"moldau_query_batch{{{own}}}": 4,
        f"moldau_query_batch_duration_seconds{{{own}}}": 1.25,
        f'moldau_query_lag_records{{{own},topic="web/orders",partition="0"}}': 7,
        f"moldau_query_watermark_timestamp_seconds{{{own}}}": 1_769_860_800,
        f"moldau_query_restarts_total{{{own}}}": 1,
        f'moldau_query_broken_rows_total{{{own},expectation="rule \\"one\\""}}': 2,
        f'moldau_query_rejected_records_total{{{own},topic="orders"}}': 3,
    }
    assert [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")] == [one.name for one in FIGURES]
    waiting = STATUS | {"state": "waiting to restart", "watermark": None, "lags": {}}
    assert 'moldau_query_running{pipeline="shop",query="copies"} 0\n' in exposition("shop", {"copies": waiting})


def test_the_page_is_served_and_nothing_else() -> None:
    server = MetricsServer("shop", host="127.0.0.1", port=0)
    try:
        with urlopen(server.address) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert answer.read().decode() == exposition("shop", {})
        with pytest.raises(HTTPError, match="404"):
            urlopen(server.address.replace("/metrics", "/"))
        with pytest.raises(OSError, match="in use"):
            MetricsServer("shop", host="127.0.0.1", port=int(server.address.split(":")[2].split("/")[0]))
    finally:
        server.finish([])
