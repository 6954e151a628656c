"""Reports as Spark 4.3 makes them of the source, shortened to what is read."""

from __future__ import annotations

from typing import Any

from moldau.spark.pipelines.running.reports.progress import Progress, progress_of
from moldau.spark.pipelines.running.runner import fresh_reports

SOURCE = {
    "startOffset": None,
    "endOffset": '{"orders": {"0": 3, "1": 5}}',
    "latestOffset": '{"orders": {"0": 10, "1": 5}, "late": {"0": 2}}',
    "numInputRows": 5,
    "processedRowsPerSecond": 2.5,
}
REPORT: dict[str, Any] = {
    "timestamp": "2026-11-15T15:34:29.488Z",
    "batchId": 4,
    "durationMs": {"triggerExecution": 7950},
    "eventTime": {"watermark": "2026-01-31T12:00:00.000Z"},
    "sources": [SOURCE, SOURCE | {"endOffset": SOURCE["latestOffset"]}],
    "observedMetrics": {"orders.positive": {"broken": 2}, "orders.named": {"broken": 0}},
}


def test_a_report_over_connect_has_no_totals() -> None:
    assert progress_of(REPORT) == Progress(
        batch=4,
        rows=10,
        rows_a_second=5.0,
        lag=9,
        watermark="2026-01-31T12:00:00.000Z",
        batch_ms=7950,
        broken={"orders.positive": 2},
        lags={"late/0": 2, "orders/0": 7, "orders/1": 0},
    )


def test_totals_that_are_told_count() -> None:
    told = progress_of(REPORT | {"numInputRows": 12, "processedRowsPerSecond": 3.5})
    assert (told.rows, told.rows_a_second) == (12, 3.5)


def test_the_beginning_of_time_is_no_watermark() -> None:
    assert progress_of(REPORT | {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}).watermark is None


def test_a_source_of_another_kind_has_no_lag() -> None:
    file = {"endOffset": '{"logOffset": 3}', "latestOffset": None, "numInputRows": 1}
    assert progress_of({"batchId": 0, "sources": [file]}).lag is None


def test_reports_are_fresh_by_their_order_and_not_by_the_clock() -> None:
    reports = [{"timestamp": f"2026-11-15T{hour}:00:00.000Z"} for hour in ("15", "16", "14", "15")]
    assert fresh_reports(reports, "") == reports
    assert fresh_reports(reports[:2], "2026-11-15T16:00:00.000Z") == []
    assert fresh_reports(reports[:3], "2026-11-15T16:00:00.000Z") == reports[2:3]
    assert fresh_reports(reports, "2026-11-15T14:00:00.000Z") == reports[3:]
    assert fresh_reports(reports[2:], "2026-11-15T16:00:00.000Z") == reports[2:], "Spark keeps the last hundred"
