"""The exporting process and the side of it that others see, with a collector that reads OpenTelemetry's messages."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from moldau.core.exposition import COUNTER, Exposition
from moldau.core.limits import TELEMETRY_EXPORT_BYTES_MAX
from moldau.telemetry.export.exporter import Destination, Exporter, PeriodicExport, child_environment
from tests.telemetry.collector import Collector, running_collector
from tests.telemetry.metrics import pushed

PAGE = b"""\
# HELP process_start_time_seconds Start.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1700000000.5
# HELP sent_total Sent.
# TYPE sent_total counter
sent_total{topic="a\\\\b\\"c\\nd"} 7
# HELP took Took.
# TYPE took summary
took{quantile="0.5"} 1.5
took_sum 9.0
took_count 6
# HELP size Size.
# TYPE size histogram
size_bucket{of="x",le="1.0"} 1
size_bucket{of="x",le="5.0"} 3
size_bucket{of="x",le="+Inf"} 4
size_sum{of="x"} 20.5
size_count{of="x"} 4
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as found:
        yield found


@pytest.fixture
def exporter(collector: Collector) -> Iterator[Exporter]:
    found = Exporter(Destination(collector.url, 0.05), {"service.name": "tests"})
    found.start()
    yield found
    found.stop()


def test_a_page_arrives_with_its_types(collector: Collector, exporter: Exporter) -> None:
    exporter.offer_page(PAGE)
    sent = collector.metric("sent_total", **{"service.name": "tests"})
    (point,) = sent.sum.data_points
    assert (sent.sum.is_monotonic, sent.sum.aggregation_temporality, point.as_double) == (True, 2, 7)
    assert [(one.key, one.value.string_value) for one in point.attributes] == [("topic", 'a\\b"c\nd')]
    assert point.start_time_unix_nano == 1_700_000_000_500_000_000 < point.time_unix_nano
    assert collector.metric("took").gauge.data_points[0].as_double == 1.5
    assert collector.metric("took_count").sum.is_monotonic
    (size,) = collector.metric("size").histogram.data_points
    assert (size.count, size.sum, [*size.bucket_counts], [*size.explicit_bounds]) == (4, 20.5, [1, 2, 1], [1.0, 5.0])
    assert collector.paths == ["/v1/metrics"]
    collector.until(lambda: exporter.sent == 1)


def test_what_a_client_pushed_arrives_as_it_came(collector: Collector, exporter: Exporter) -> None:
    data = pushed(
        ("sum", "org.apache.kafka.sent.total", 5),
        ("gauge", "org.apache.kafka.lag", 2.5),
        time_ns=99,
        of_resource={"group_id": "g", "client_id": "pretended"},
        of_points={"node.id": 3},
    )
    exporter.offer_push({"client_id": "shop"}, data)
    found = collector.metric("org.apache.kafka.sent.total", client_id="shop", group_id="g")
    (point,) = found.sum.data_points
    assert (found.sum.aggregation_temporality, found.sum.is_monotonic) == (1, True), "a delta stays one"
    assert (point.as_int, point.time_unix_nano, point.attributes[0].key) == (5, 99, "node.id")
    assert collector.metric("org.apache.kafka.lag").gauge.data_points[0].as_double == 2.5


def test_a_collector_that_refuses_is_a_line_of_the_log(
    collector: Collector, exporter: Exporter, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 400
    with caplog.at_level(logging.WARNING):
        exporter.offer_page(PAGE)
        collector.until(lambda: exporter.failed == 1)
    assert f"metrics were not sent to {collector.url}: " in caplog.text
    assert "400" in caplog.text
    collector.status = 200
    exporter.offer_page(PAGE)
    collector.until(lambda: exporter.sent == 1)


def test_an_exporting_process_that_ended_is_started_again(collector: Collector, exporter: Exporter) -> None:
    exporter.offer_page(PAGE)
    collector.until(lambda: exporter.sent == 1)
    process = exporter._process
    assert process is not None
    process.kill()
    process.wait()
    exporter.offer_page(PAGE)
    collector.until(lambda: exporter.failed == 1)
    exporter.offer_page(PAGE)
    collector.until(lambda: exporter.sent == 2)


def test_what_there_is_no_room_for_is_dropped_and_counted() -> None:
    """It does not run, so that everything waits."""
    exporter = Exporter(Destination("http://127.0.0.1:1", 1.0), {})
    for _ in range(3):
        exporter.offer_page(b"x" * (TELEMETRY_EXPORT_BYTES_MAX // 2))
    assert exporter.dropped == 2


def test_pages_are_sent_again_and_again(collector: Collector) -> None:
    export = PeriodicExport(Exporter(Destination(collector.url, 0.05), {}), lambda: PAGE)
    export.start()
    try:
        collector.until(lambda: len(collector.requests) >= 3)
    finally:
        export.stop()


def test_headers_come_from_the_environment(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    exporter = Exporter(Destination(collector.url, 1.0), {"service.name": "moldau"})
    exporter.start()
    try:
        exporter.offer_page(PAGE)
        collector.metric("sent_total", **{"service.name": "mine"})
    finally:
        exporter.stop()
    assert collector.headers[0]["authorization"] == "Bearer x"
    assert collector.headers[0]["content-encoding"] == "gzip"


def test_what_is_said_here_wins_over_the_environment() -> None:
    theirs = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://b/x"}
    assert child_environment(Destination("http://b/x", 1), theirs) == theirs
    assert child_environment(Destination("http://c", 1), theirs) == {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}


def test_a_password_in_the_url_is_not_shown() -> None:
    assert str(Destination("https://user:secret@collector:4318/x", 1)) == "https://collector:4318/x"


def test_what_a_client_calls_itself_is_no_line_of_its_own(collector: Collector, exporter: Exporter) -> None:
    """A stranger's name that did not log in is in a page, too, and must neither end the process nor add metrics."""
    names = {f"a{end}up x{end}pretended 1{end}b" for end in "\r\x0b\x0c\x1c\x85\u2028"}
    page = Exposition()
    for name in names:
        page.add("sent_total", "Sent.", {"client_id": name}, 7, COUNTER)
    exporter.offer_page(b"".join(page.blocks()))
    points = collector.metric("sent_total").sum.data_points
    assert {one.value.string_value for point in points for one in point.attributes} == names
    assert [[*metrics] for _, metrics in collector.resources()] == [["sent_total"]]
